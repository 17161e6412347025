"""Scenarios of the stages of a record's life, and of the old leader's return."""
