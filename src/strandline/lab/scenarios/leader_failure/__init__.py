"""Scenarios of the analysis of what happens when a leader fails."""
