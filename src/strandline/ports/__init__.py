"""What the world must offer to a node: protocols only. `node` has the real twins, `sim` the simulated ones."""
