"""Scenarios of the ISR and its minimum, with two and three replicas."""
