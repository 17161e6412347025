"""Commands that start nodes or prepare them: their options. The work is in `serving`, `clusters`, `formatting`."""
