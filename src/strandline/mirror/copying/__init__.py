"""From the source to the target: topics, who copies which partition, and the transactions that do it."""
