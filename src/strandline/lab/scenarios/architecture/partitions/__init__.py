"""Scenarios of links that are cut: who goes on, and what becomes of the records."""
