"""The file of a mirror: MirrorMaker 2's properties as values, and the replication policies."""
