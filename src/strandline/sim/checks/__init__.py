"""The checkers that judge a simulation, one to a file. Each raises Violation."""
