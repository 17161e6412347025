"""The work of clients in a simulated cluster while faults strike."""
