"""The consumer: subscription, positions, fetching, decoding, commits; `group` has its membership."""
