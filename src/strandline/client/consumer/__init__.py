"""The consumer: subscription, positions, fetching, decoding, commits."""
