"""An Avro schema in the registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from strandline.registry.formats.avro.comparison import AmbiguousField, incompatibilities
from strandline.registry.formats.avro.normal_form import normalize
from strandline.registry.formats.avro.parser import AvroParser
from strandline.registry.formats.avro.printer import print_schema
from strandline.registry.formats.avro.types import AvroType
from strandline.registry.formats.parsed import ParsedSchema, Reference


class AvroSchema(ParsedSchema):
    type: ClassVar[str] = "AVRO"

    def __init__(
        self,
        root: AvroType,
        imported: tuple[str, ...],
        references: tuple[Reference, ...],
        resolved: Mapping[str, str],
    ) -> None:
        """`imported` are the full names that the references define."""
        super().__init__(references, resolved)
        self.root = root
        self._imported = imported
        self._text = print_schema(root, imported)

    @classmethod
    def parse(
        cls, text: str, references: tuple[Reference, ...], resolved: Mapping[str, str], *, is_new: bool
    ) -> AvroSchema:
        parser = AvroParser(is_new=is_new)
        for imported in resolved.values():
            parser.parse(imported)
        names = tuple(parser.names)
        return cls(parser.parse(text), names, references, resolved)

    @property
    def text(self) -> str:
        return self._text

    @property
    def resolved_text(self) -> str:
        """The text with every imported type written out, as readers of data need it."""
        return print_schema(self.root)

    def normalized(self) -> AvroSchema:
        return AvroSchema(normalize(self.root), self._imported, self.sorted_references(), self.resolved)

    def formatted(self, format: str) -> str:
        return self.resolved_text if format.lower() == "resolved" else self.text

    def incompatibilities(self, previous: ParsedSchema, *, is_lenient: bool = False) -> list[str]:
        assert isinstance(previous, AvroSchema)
        try:
            return [str(found) for found in incompatibilities(self.root, previous.root)]
        except AmbiguousField as error:
            return [f"Unexpected exception during compatibility check: {error}"]

    def has_top_level_field(self, name: str) -> bool:
        return self.root.kind == "record" and self.root.field_named(name) is not None

    def is_equivalent(self, other: ParsedSchema) -> bool:
        return isinstance(other, AvroSchema) and self.resolved_text == other.resolved_text
