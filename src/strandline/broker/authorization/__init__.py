"""Who may do what: the rules for each API, and the authorizer of a node."""
