"""Frames for both sides of a connection; requests in flight, versions and logins for the side that sends requests."""
