"""Metrics that clients push to their broker (KIP-714): subscriptions, and the pushed series."""
