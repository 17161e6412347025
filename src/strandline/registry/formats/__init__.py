"""Avro, JSON Schema and Protobuf: parsing, canonical text, normal form and compatibility, all of it pure."""
