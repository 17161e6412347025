"""Kafka's formats: messages, records and batches, with one class for all versions of a message."""
