"""Avro as Java's library reads and prints it."""

from strandline.registry.formats.avro.parsed import AvroSchema

__all__ = ["AvroSchema"]
