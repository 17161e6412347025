"""The clients' settings: declared by key, checked, documented."""
