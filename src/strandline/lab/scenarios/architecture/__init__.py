"""Scenarios of the analysis of the architecture."""
