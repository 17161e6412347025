"""`strandline dlq`: dead letters: which there are, why, and back into their topics."""
