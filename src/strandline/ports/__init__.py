"""The world that a node lives in: protocols only. `node` has the real twins, `sim` the simulated ones."""
