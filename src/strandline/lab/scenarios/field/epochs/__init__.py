"""Scenarios of producer epochs at their end, and of epochs that a client makes up."""
