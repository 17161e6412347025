"""Consumers of every client library as members of groups: programs that start and stop members by JSON lines."""
