"""Connections of clients: frames in, dispatch to a handler, responses out in order, and the limits on all of it."""
