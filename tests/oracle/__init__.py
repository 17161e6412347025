"""What the tests measure Strandline against: Apache Kafka, its tools and kcat, fetched and run."""
