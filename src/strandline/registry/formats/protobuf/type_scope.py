"""The types that a file may name: its own, those of imported files, and well-known ones; and how names are resolved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from strandline.registry.formats.parsed import Reference
from strandline.registry.formats.protobuf.elements import (
    ProtoEnum,
    ProtoExtend,
    ProtoField,
    ProtoFile,
    ProtoMessage,
)


@dataclass(frozen=True, slots=True)
class TypeEntry:
    package: str
    reference: Reference | None  # None stands for well-known types
    type: ProtoMessage | ProtoEnum

    @property
    def is_enum(self) -> bool:
        return isinstance(self.type, ProtoEnum)

    @property
    def map_type(self) -> str | None:
        """The text `map<key, value>` for the message of a map field; None for other messages."""
        if not isinstance(self.type, ProtoMessage) or not self.type.is_map_entry:
            return None
        by_name = {field.name: field.type for field in self.type.fields}
        return f"map<{by_name.get('key')}, {by_name.get('value')}>"


LOCAL = Reference("", "", -1)


class TypeScope:
    """A place in a file, from which names are looked up outwards."""

    def __init__(
        self, types: Mapping[str, TypeEntry], extensions: Mapping[str, ProtoField], package: str
    ) -> None:
        self.types = types
        self.extensions = extensions
        self.package = package
        self.names: list[str] = []  # the names of the messages around this place

    @classmethod
    def of(cls, file: ProtoFile, imported: Iterable[tuple[ProtoFile, Reference | None]]) -> TypeScope:
        types: dict[str, TypeEntry] = {}
        extensions: dict[str, ProtoField] = {}
        for each, reference in (*imported, (file, LOCAL)):
            package = each.package or ""
            prefix = f"{package}." if package else ""
            _collect_extensions(each.extends, prefix, extensions)
            _collect(each.types, prefix, package, reference, types, extensions)
        return cls(types, extensions, file.package or "")

    def moved(self, package: str, names: Iterable[str]) -> TypeScope:
        """Returns the same types, as seen from another place in the file."""
        made = TypeScope(self.types, self.extensions, package)
        made.names = list(names)
        return made

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        self.names.append(name)
        try:
            yield
        finally:
            self.names.pop()

    def resolve(self, name: str) -> str | None:
        """Returns the full name, without a dot in front."""
        return self._resolved(name, self.types)

    def resolve_extension(self, name: str) -> str | None:
        return self._resolved(name, self.extensions)

    def find(self, name: str) -> TypeEntry | None:
        full = self.resolve(name)
        return None if full is None else self.types[full]

    def _resolved(self, name: str, known: Mapping[str, object]) -> str | None:
        if name.startswith("."):
            return name[1:] if name[1:] in known else None
        prefix = [*(self.package.split(".") if self.package else ()), *self.names]
        while prefix:
            full = f"{'.'.join(prefix)}.{name}"
            if full in known:
                return full
            prefix.pop()
        return name if name in known else None


def _collect(
    types: Iterable[ProtoMessage | ProtoEnum],
    prefix: str,
    package: str,
    reference: Reference | None,
    found: dict[str, TypeEntry],
    extensions: dict[str, ProtoField],
) -> None:
    for each in types:
        name = prefix + each.name
        found[name] = TypeEntry(package, reference, each)
        if isinstance(each, ProtoMessage):
            _collect_extensions(each.extends, f"{name}.", extensions)
            _collect(each.types, f"{name}.", package, reference, found, extensions)


def _collect_extensions(
    extends: Iterable[ProtoExtend], prefix: str, extensions: dict[str, ProtoField]
) -> None:
    for extend in extends:
        for field in extend.fields:
            extensions[prefix + field.name] = field
