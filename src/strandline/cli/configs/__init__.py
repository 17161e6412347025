"""`strandline configs`: settings of topics, brokers, groups, loggers and client metrics."""
