"""`strandline transactions` and `producers`: what is open, what hangs, and how it is ended."""
