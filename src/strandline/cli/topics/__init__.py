"""`strandline topics`: creates, describes, changes and deletes topics."""
