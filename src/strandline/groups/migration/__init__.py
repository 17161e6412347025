"""Groups between the two protocols: upgrade, downgrade, and classic members of a consumer group."""
