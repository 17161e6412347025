"""Real clients and Apache Kafka's own tools against a broker."""
