"""Scenarios, the faults in them, one run from a seed to its verdict, and shorter versions of a failing one."""
