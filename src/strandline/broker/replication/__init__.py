"""Replicas of partitions on this node: logs and roles, fetching from leaders, in-sync sets, delayed responses."""
