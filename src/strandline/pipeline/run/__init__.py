"""Running a pipeline: session, queries, progress, state, stop requests, validation."""
