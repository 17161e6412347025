"""Consumer groups and committed offsets, as machines over the records of `__consumer_offsets`. Pure."""
