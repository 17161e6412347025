"""The producer: records in, batches out, and what brokers said of them."""
