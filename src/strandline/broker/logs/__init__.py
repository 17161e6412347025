"""Work on logs over time: recovery at the start, compaction, checkpoints, retries while a disk is full."""
