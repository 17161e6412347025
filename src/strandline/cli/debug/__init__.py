"""Help for those who look for a cause."""
