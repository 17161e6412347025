"""How much clients may use: bytes, time of the loop, changes of topics, new connections."""
