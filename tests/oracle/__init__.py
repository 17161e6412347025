"""The oracles that tests compare Strandline with: Apache Kafka, its tools, kcat and others, fetched and run."""
