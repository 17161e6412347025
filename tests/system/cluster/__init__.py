"""The cluster on real processes: kills, pauses, partitions, restarts."""
