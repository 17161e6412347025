"""One replica's role: what a leader may accept, acknowledge and show. Pure."""
