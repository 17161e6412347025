"""Scenarios of bugs that were found in brokers and clients of this kind."""
