"""Consumer groups at both ends, and the records of MirrorMaker 2: checkpoints, heartbeats, offset syncs."""
