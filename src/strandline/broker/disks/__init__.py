"""Writes to log directories: checkpoints, one at a time, and retries while the disk is full."""
