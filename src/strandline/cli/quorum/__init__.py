"""`strandline quorum`: shows and changes the controllers' quorum."""
