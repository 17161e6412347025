"""Requests and responses: one file per API key."""
