"""Which parts of a node are measured, and by which names: collectors read the parts when somebody looks."""
