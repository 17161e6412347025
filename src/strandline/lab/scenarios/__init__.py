"""The scenarios, one module each, in a package for each document that they are from."""
