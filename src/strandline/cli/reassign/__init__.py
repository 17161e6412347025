"""`strandline reassign`: plans, starts, shows, verifies and cancels moves of replicas between brokers."""
