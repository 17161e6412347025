"""The topic `_schemas`: its checks, its reader, and the right to write to it."""
