"""JSON Schema of drafts 4, 6, 7, 2019-09 and 2020-12."""

from strandline.registry.formats.json_schema.parsed import JsonSchema

__all__ = ["JsonSchema"]
