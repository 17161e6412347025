"""The rows of "What messages are lost when a leader fails"."""
