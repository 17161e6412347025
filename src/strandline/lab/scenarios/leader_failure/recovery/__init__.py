"""Scenarios of recovery: how long each part of it takes."""
