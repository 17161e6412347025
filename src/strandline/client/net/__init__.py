"""The client and the cluster: connections, metadata, coordinators, backoff."""
