"""Strandline: a replicated, partitioned commit log that speaks Kafka's protocol and keeps Kafka's on-disk format."""

__version__ = "0.1.0"
