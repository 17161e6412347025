"""The rules of each API for what a user may do, and the authorizer of a node."""
