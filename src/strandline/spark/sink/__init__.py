"""Sinks: exactly once by a transaction per micro-batch, and at least once."""
