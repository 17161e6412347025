"""Scenarios of the analysis of how producers lose records."""
