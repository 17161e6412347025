"""`lab check`: failures that are played with somebody's own settings, and what the settings make of them."""
