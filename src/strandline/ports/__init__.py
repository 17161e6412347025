"""The world in which a node runs, as protocols. `node` has the real implementations, `sim` the simulated ones."""
