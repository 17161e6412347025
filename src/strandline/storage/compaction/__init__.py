"""Compaction: a topic with `cleanup.policy=compact` keeps the newest record of every key, at its old offset."""
