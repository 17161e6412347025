"""The producer: records are appended to batches, which the sender delivers."""
