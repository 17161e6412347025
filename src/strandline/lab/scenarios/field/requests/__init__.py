"""Scenarios of requests and responses: hostile, lost, or applied in spite of an error."""
