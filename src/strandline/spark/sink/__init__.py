"""Sinks: exactly once by transactions of micro-batches, and at least once."""
