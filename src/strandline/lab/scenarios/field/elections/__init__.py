"""Scenarios of leaders that change while something else happens."""
