"""Pages of the reference that are made by playing failures: presets, guarantees of producers, durability, acks."""
