"""The server's shell: cores decide, and the shell carries out their decisions through the ports."""
