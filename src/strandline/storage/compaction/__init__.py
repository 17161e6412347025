"""Compaction: of a topic with `cleanup.policy=compact` the newest record of every key stays, at its old offset."""
