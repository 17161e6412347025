"""What a simulation is judged by, one checker to a file. Each raises Violation."""
