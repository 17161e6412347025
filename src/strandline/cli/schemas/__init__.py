"""`strandline schemas`: the schemas of a registry, for people."""
