"""The spec of a pipeline: read from YAML, checked, and held as values."""
