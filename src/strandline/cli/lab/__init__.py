"""`strandline lab`: failures that can be run, watched and checked."""
