"""Scenarios of the recovery of many partitions at once."""
