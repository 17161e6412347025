"""`strandline reassign`: moves replicas between brokers: plan, start, watch, verify, cancel."""
