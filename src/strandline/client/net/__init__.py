"""The client's side of the network: connections, metadata, coordinators, backoff."""
