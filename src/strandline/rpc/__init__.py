"""Frames, version negotiation and requests in flight, for both sides of a connection."""
