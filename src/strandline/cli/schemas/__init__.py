"""`strandline schemas`: shows and changes the schemas of a registry."""
