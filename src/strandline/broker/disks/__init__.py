"""Writes to log directories that may be full or busy: checkpoints one at a time, and retries while there is no room."""
