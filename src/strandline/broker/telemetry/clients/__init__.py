"""Metrics that clients push to their broker (KIP-714): who is asked for what, and what they said."""
