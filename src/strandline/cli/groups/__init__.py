"""`strandline groups`: consumer groups, their members, their offsets and lag."""
