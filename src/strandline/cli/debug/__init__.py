"""Commands that help to find the cause of a problem."""
