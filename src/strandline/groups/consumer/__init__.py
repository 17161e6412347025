"""The consumer protocol (KIP-848): the coordinator assigns."""
