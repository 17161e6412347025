"""What clients do in a simulated cluster while faults strike."""
