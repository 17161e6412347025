"""Scenarios of transactions that requests of others, or late ones, reach into."""
