"""Commands about a whole cluster."""
