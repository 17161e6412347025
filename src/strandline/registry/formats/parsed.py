"""The interface of all three formats: a parsed schema with its canonical text and its rules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar


class InvalidSchema(Exception):
    """The text is no schema of its type; the message says why."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema that another schema imports under `name`. Version -1 means the latest one."""

    name: str
    subject: str
    version: int

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "subject": self.subject, "version": self.version}


class ParsedSchema(ABC):
    """A schema without its place: no subject, version, id or metadata."""

    type: ClassVar[str]

    def __init__(self, references: tuple[Reference, ...], resolved: Mapping[str, str]) -> None:
        """`resolved` has the text of each imported schema by its reference name, in the order of dependence."""
        self.references = references
        self.resolved = resolved

    @property
    @abstractmethod
    def text(self) -> str:
        """The canonical text, which is stored and hashed."""

    @abstractmethod
    def normalized(self) -> ParsedSchema:
        """Returns an equivalent schema in normal form: parts whose order does not matter are sorted, references too."""

    @abstractmethod
    def incompatibilities(self, previous: ParsedSchema, *, is_lenient: bool = False) -> list[str]:
        """Returns the reasons why data written with `previous` cannot be read with this schema. Each `%s` pair names
        the two sides."""

    def formatted(self, format: str) -> str:
        """Returns the text in an output format of the registry; an unknown format gives the canonical text."""
        return self.text

    def check(self, *, is_strict: bool) -> None:
        """Raises InvalidSchema for faults that parsing alone does not find."""
        return

    def has_top_level_field(self, name: str) -> bool:
        return False

    def is_equivalent(self, other: ParsedSchema) -> bool:
        """True if both mean the same to clients, even if their references are resolved differently."""
        return type(self) is type(other) and self.text == other.text

    def sorted_references(self) -> tuple[Reference, ...]:
        distinct = dict.fromkeys(self.references)
        return tuple(sorted(distinct, key=lambda reference: (reference.subject, reference.version)))
