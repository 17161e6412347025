"""Membership of a group, in both protocols, and the assignors of the classic one."""
