"""Consumers of every client library as members of groups: programs told by JSON lines whom to start and stop."""
