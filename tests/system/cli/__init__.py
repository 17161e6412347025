"""The commands that ask a cluster, against a real broker."""
