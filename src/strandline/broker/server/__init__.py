"""Connections of clients: frames, dispatch to handlers, responses in order, and limits."""
