"""Spark's Java and Python processes: how they are found, started and kept quick."""
