"""Cluster metadata as a replicated machine: `plan` decides and changes nothing, `apply` changes and decides nothing."""
