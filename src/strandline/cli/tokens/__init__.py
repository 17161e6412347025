"""Commands about delegation tokens."""
