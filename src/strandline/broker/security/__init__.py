"""The security of each listener, logins of clients, and logins of this node to others."""
