"""The server's shell: it lets cores decide and does what they say, through the ports."""
