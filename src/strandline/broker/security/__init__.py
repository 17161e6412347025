"""The security of each listener, logins of clients, and how this node logs in to others."""
