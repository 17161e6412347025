"""`strandline dlq`: lists dead letters, shows their reasons, and puts them back into their topics."""
