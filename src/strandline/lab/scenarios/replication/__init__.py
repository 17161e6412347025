"""Scenarios of the analysis of replication."""
