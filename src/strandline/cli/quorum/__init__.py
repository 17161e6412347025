"""`strandline quorum`: the controllers' quorum."""
