"""Mixed load on one node for long: nothing in the node may grow."""
