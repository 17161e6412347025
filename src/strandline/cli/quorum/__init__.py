"""`strandline quorum`: the controllers, which of them leads, and who votes."""
