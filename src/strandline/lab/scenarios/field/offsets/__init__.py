"""Scenarios of offsets: by time, after a compaction, in a healthy cluster."""
