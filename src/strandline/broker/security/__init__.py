"""Who may connect: the security of each listener, logins of clients, and how this node logs in to others."""
