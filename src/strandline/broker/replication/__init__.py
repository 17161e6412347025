"""Replicas of partitions on this node: their logs and roles, fetching from leaders, in-sync sets, delayed responses."""
