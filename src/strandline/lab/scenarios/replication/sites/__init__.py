"""Scenarios of zones and sites that are lost, and of observers."""
