"""Scenarios of consumers: offsets, commits, isolation, coordinators."""
