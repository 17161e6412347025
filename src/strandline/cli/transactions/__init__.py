"""`strandline transactions` and `producers`: show transactions, find hanging ones, and abort them."""
