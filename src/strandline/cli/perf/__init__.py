"""Measurements against a cluster."""
