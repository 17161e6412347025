"""Scenarios of epochs, by which what is late is refused."""
