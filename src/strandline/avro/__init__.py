"""Avro values into Arrow columns, by a schema that is given; see `decoding`. Needs the packages of `columnar`."""
