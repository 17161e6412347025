"""The REST interface: paths, bodies, errors and content types as Confluent's registry has them."""
