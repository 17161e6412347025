"""The engine of a simulation: virtual time, page caches, connections, the trace, the seal against the real world."""
