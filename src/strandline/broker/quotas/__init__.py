"""Quotas of clients: bytes, time of the loop, changes of topics, new connections."""
