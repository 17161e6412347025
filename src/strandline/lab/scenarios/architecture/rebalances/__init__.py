"""Scenarios of groups that rebalance: storms and what calms them, static members, the time that it takes."""
