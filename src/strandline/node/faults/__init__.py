"""Faults that a test sets on a node: in its requests, on its links to other nodes, on its disk, in its time.

Nothing here is loaded by a node on which nobody can set a fault (ADR 50).
"""
