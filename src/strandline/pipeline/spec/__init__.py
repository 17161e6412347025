"""The spec of a pipeline: read from YAML, checked, held as values."""
