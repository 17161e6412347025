"""Work on logs over time: recovery at the start, retention, compaction, scrubbing, removal of files."""
