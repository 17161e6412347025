"""Four client libraries behind one interface, so that every claim about a broker is written once."""
