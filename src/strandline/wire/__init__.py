"""Kafka's bytes: messages, records and batches, one version-free class each."""
