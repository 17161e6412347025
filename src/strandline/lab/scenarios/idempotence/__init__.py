"""Scenarios of the analysis of idempotence through elections."""
