"""Scenarios 1 to 4 of the analysis: one broker dies, two die, the leader dies with records of its own, a restart."""
