"""Spark's Python processes and Java: how they are found, started and kept quick."""
