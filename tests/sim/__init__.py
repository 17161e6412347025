"""Scenarios in the simulated world, each from a seed."""
