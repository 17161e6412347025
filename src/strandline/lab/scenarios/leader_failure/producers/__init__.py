"""Scenarios of producers: retries, idempotence, the full buffer."""
