"""The options of commands that start or prepare nodes. The work is done in `serving`, `clusters` and `formatting`."""
