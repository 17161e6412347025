"""The registry as a service: reads from its state, one writer among its instances, forwarding to it."""
