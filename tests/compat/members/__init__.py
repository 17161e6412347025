"""Consumers of every client library as members of groups: programs that are told by JSON lines whom to start and stop."""
