"""The authorization of requests: the rules of each API, and the authorizer of a node."""
