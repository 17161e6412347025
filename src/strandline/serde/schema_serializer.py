"""The base of the serializers and deserializers of all formats: it finds the schemas of values, and frames values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple, Self

from strandline.ports.clock import Clock
from strandline.ports.web import Web
from strandline.serde.bounded_cache import BoundedCache
from strandline.serde.contract import LOOKUPS_MAX, LookupNeeded, RecordHeader
from strandline.serde.errors import (
    RegistryRefused,
    SerdeError,
    UndecodableValue,
    UnusableSchema,
    ValueDoesNotFit,
)
from strandline.serde.framing import (
    FRAMINGS,
    HEADER,
    HEADERS,
    ID_BYTES,
    PREFIX,
    Frame,
    guid_header,
    header_frame,
    id_prefix,
    read_frame,
)
from strandline.serde.real_ports import run_blocking
from strandline.serde.registry.client import SchemaRegistry
from strandline.serde.registry.schemas import RegisteredSchema, Schema, SchemaReference
from strandline.serde.subjects import SubjectNameStrategy, strategy_of

# `Encode` takes a prefix and a value, and returns the bytes of both. `Decode` takes bytes and the position at which the
# value begins, and returns the value.
Encode = Callable[[bytes, Any], bytes]
Decode = Callable[[bytes, int], Any]

# The registry is asked again for a schema that it did not know, or that was unusable, after this time.
_FAILED_S: Final = 30.0


class Writer(NamedTuple):
    """The way in which values of one topic are written: the function, the bytes in front of each value, the content of
    the header if there is one, and the time until which the schema counts as the latest (None: for ever)."""

    encode: Encode
    prefix: bytes
    header: bytes | None
    until: float | None


def registry_of(given: SchemaRegistry | str | Mapping[str, Any]) -> SchemaRegistry:
    """Returns the registry that is given as an object, by its URL, or by its settings."""
    return given if isinstance(given, SchemaRegistry) else SchemaRegistry(given)


class _RegistrySerde:
    """A serializer or deserializer for keys or values, with its registry."""

    def __init__(
        self,
        registry: SchemaRegistry | str | Mapping[str, Any],
        subject_name_strategy: str | SubjectNameStrategy,
    ) -> None:
        self.registry = registry_of(registry)
        self._strategy = strategy_of(subject_name_strategy)
        self._part = "value"
        self._header = HEADERS["value"]

    def for_part(self, part: str) -> Self:
        """Returns a copy for keys or for values, with the same registry and empty caches."""
        other = copy(self)
        other._part = part
        other._header = HEADERS[part]
        other._empty_caches()
        return other

    def use_ports(self, web: Web | None, clock: Clock) -> None:
        self.registry.use_ports(web, clock)

    def _empty_caches(self) -> None:
        raise NotImplementedError


class SchemaSerializer(_RegistrySerde, ABC):
    """Writes values with a schema of a registry.

    With `auto_register_schemas` the schema is registered under its subject; without it the schema must be there.
    `use_latest_version` writes with the latest schema of the subject instead, and `use_schema_id` with the schema of an
    id. `framing` is `prefix` or `header`.
    """

    type: ClassVar[str]

    def __init__(
        self,
        registry: SchemaRegistry | str | Mapping[str, Any],
        schema: str | Schema | None = None,
        *,
        references: Sequence[SchemaReference] = (),
        auto_register_schemas: bool | None = None,
        use_latest_version: bool = False,
        use_schema_id: int | None = None,
        normalize_schemas: bool = False,
        subject_name_strategy: str | SubjectNameStrategy = "topic",
        framing: str = PREFIX,
        to_dict: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__(registry, subject_name_strategy)
        if framing not in FRAMINGS:
            raise ValueError(f"framing={framing!r}: use {' or '.join(FRAMINGS)}")
        takes_other = use_latest_version or use_schema_id is not None
        if takes_other and auto_register_schemas:
            raise ValueError(
                "auto_register_schemas cannot be combined with use_latest_version or use_schema_id: leave it out"
            )
        if use_latest_version and use_schema_id is not None:
            raise ValueError("use_latest_version and use_schema_id cannot be combined: leave one out")
        self._schema = Schema(schema, self.type, tuple(references)) if isinstance(schema, str) else schema
        if self._schema is None and not takes_other and not self._has_own_schema():
            raise ValueError("a schema is missing: give one, or set use_latest_version=True")
        self._auto_register = not takes_other if auto_register_schemas is None else auto_register_schemas
        self._use_latest = use_latest_version
        self._use_id = use_schema_id
        self._normalize = normalize_schemas
        self._framing = framing
        self._to_dict = to_dict
        self._empty_caches()

    def _empty_caches(self) -> None:
        self._writers: BoundedCache[str, Writer] = BoundedCache(self.registry.settings.entries_max)

    def serialize_record(self, topic: str, value: Any, headers: list[Any]) -> bytes | None:
        """Returns the bytes of a value; with `framing=header` it adds a header. Raises LookupNeeded if the topic's
        schema has to be looked up, and ValueDoesNotFit if the value does not fit it."""
        if value is None:
            return None
        writer = self._writers.get(topic)
        if writer is None or (writer.until is not None and self.registry.clock.monotonic() >= writer.until):
            raise LookupNeeded(f"the schema for {topic}", partial(self._look_up, topic))
        if self._to_dict is not None:
            value = self._to_dict(value)
        data = writer.encode(writer.prefix, value)
        if writer.header is not None:
            headers.append((self._header, writer.header))
        return data

    def serialize(self, topic: str, value: Any, headers: list[Any] | None = None) -> bytes | None:
        """Does the same without Strandline's client. It blocks while the registry is asked."""
        if self._framing == HEADER and headers is None:
            raise ValueError("framing=header needs a list of headers, to which the schema's GUID is added")
        for _ in range(LOOKUPS_MAX):
            try:
                return self.serialize_record(topic, value, [] if headers is None else headers)
            except LookupNeeded as needed:
                run_blocking(_awaited(needed))
        raise RuntimeError("cache.latest.ttl.sec is too short: the schema is old before a value is written")

    async def _look_up(self, topic: str) -> None:
        registered = await self._find_schema(topic)
        encode = self._encoder(registered)
        header = None
        prefix = b""
        if self._framing == HEADER:
            guid = await self._guid(registered)
            header = guid_header(guid) + self._message_path(registered)
        else:
            assert registered.id is not None, "only a schema that was found by its GUID has no id"
            prefix = id_prefix(registered.id) + self._message_path(registered)
        until = (
            self.registry.clock.monotonic() + self.registry.settings.latest_s if self._use_latest else None
        )
        self._writers.put(topic, Writer(encode, prefix, header, until))

    async def _find_schema(self, topic: str) -> RegisteredSchema:
        """Returns the schema with which values of a topic are written; registers it if that is allowed."""
        if self._use_id is not None:
            by_id = await self.registry.by_id(self._use_id, self._format())
            return RegisteredSchema(
                schema=by_id.schema, id=self._use_id, guid=by_id.guid, imported=by_id.imported
            )
        subject = self._strategy(topic, self._part, self._record_name())
        if self._use_latest:
            latest = await self.registry.latest(subject)
            if self._format():
                assert latest.version is not None, "a version of a subject has its number"
                formatted = await self.registry.by_version(subject, latest.version, self._format())
                return RegisteredSchema(
                    schema=formatted.schema, id=latest.id, guid=latest.guid, imported=formatted.imported
                )
            return latest
        schema = await self._own_schema(self._auto_register)
        find = self.registry.register if self._auto_register else self.registry.lookup
        return await find(subject, schema, normalize=self._normalize)

    async def _guid(self, registered: RegisteredSchema) -> str:
        guid = registered.guid
        if guid is None and registered.id is not None:
            guid = (await self.registry.by_id(registered.id)).guid
        if guid is None:
            raise RegistryRefused(
                f"the registry has no GUID for schema id {registered.id}: write with framing=prefix", 200, 0
            )
        return guid

    async def _own_schema(self, registers: bool) -> Schema:
        assert self._schema is not None, "the constructor has checked it"
        return self._schema

    def _has_own_schema(self) -> bool:
        return False

    def _format(self) -> str:
        """Returns the `format` in which the registry is asked for a schema that the application does not give."""
        return ""

    def _message_path(self, registered: RegisteredSchema) -> bytes:
        """Returns the bytes between the id and the value, which only Protobuf has."""
        return b""

    @abstractmethod
    def _record_name(self) -> str | None:
        """Returns the full name of the record type, for subject name strategies; None if it has none."""

    @abstractmethod
    def _encoder(self, registered: RegisteredSchema) -> Encode:
        """Returns the function that writes values with a schema. Raises UnusableSchema."""


class SchemaDeserializer(_RegistrySerde, ABC):
    """Reads values whose frame names a schema of a registry, in both framings."""

    type: ClassVar[str]

    def __init__(
        self,
        registry: SchemaRegistry | str | Mapping[str, Any],
        schema: str | Schema | None = None,
        *,
        references: Sequence[SchemaReference] = (),
        use_latest_version: bool = False,
        subject_name_strategy: str | SubjectNameStrategy = "topic",
        from_dict: Callable[[Any], Any] | None = None,
    ) -> None:
        """`schema` is the reader's schema; with `use_latest_version` that is the latest of the subject."""
        super().__init__(registry, subject_name_strategy)
        self._schema = Schema(schema, self.type, tuple(references)) if isinstance(schema, str) else schema
        if self._schema is not None and use_latest_version:
            raise ValueError("schema and use_latest_version cannot be combined: leave one out")
        self._use_latest = use_latest_version
        self._from_dict = from_dict
        self._empty_caches()

    def _empty_caches(self) -> None:
        entries_max = self.registry.settings.entries_max
        self._decoders: BoundedCache[Any, Decode] = BoundedCache(entries_max)
        self._failures: BoundedCache[Any, tuple[SerdeError, float]] = BoundedCache(entries_max)
        self._latest: BoundedCache[str, RegisteredSchema] = BoundedCache(entries_max)

    def deserialize_record(self, topic: str, data: bytes | None, headers: Sequence[RecordHeader]) -> Any:
        """Returns the value. Raises LookupNeeded for a schema that has to be looked up, NotFramed, UnknownSchema,
        UnusableSchema or UndecodableValue."""
        if data is None:
            return None
        frame = header_frame(headers, self._header) if headers else None
        key: Any
        if frame is None:
            key, start = data[:ID_BYTES], ID_BYTES
        else:
            key, start = frame, 0
        if self._use_latest:
            key = (key, topic)
        decode = self._decoders.get(key)
        if decode is None:
            raise self._failure_or_lookup(topic, key, data if frame is None else frame)
        value = decode(data, start)
        return value if self._from_dict is None else self._from_dict(value)

    def deserialize(self, topic: str, data: bytes | None, headers: Sequence[RecordHeader] = ()) -> Any:
        """Does the same without Strandline's client. It blocks while the registry is asked."""
        for _ in range(LOOKUPS_MAX):
            try:
                return self.deserialize_record(topic, data, headers)
            except LookupNeeded as needed:
                run_blocking(_awaited(needed))
        raise RuntimeError("cache.capacity is too small: a schema is forgotten before a value is read")

    def _failure_or_lookup(self, topic: str, key: Any, framed: bytes) -> Exception:
        """Returns the error of a schema that was unknown or unusable a moment ago, or else LookupNeeded."""
        failed = self._failures.get(key)
        if failed is not None and self.registry.clock.monotonic() < failed[1]:
            return failed[0].with_traceback(None)
        frame = read_frame(framed)
        return LookupNeeded(frame.name, partial(self._look_up, topic, key, frame, framed))

    async def _look_up(self, topic: str, key: Any, frame: Frame, framed: bytes) -> None:
        """Makes the decoder of a schema. If the schema is unknown or unusable, the error is remembered, and raised for
        each value that names the schema. Only failures of the registry itself are raised here."""
        try:
            if frame.id is not None:
                writer = await self.registry.by_id(frame.id, self._format())
            else:
                assert frame.guid is not None
                writer = await self.registry.by_guid(frame.guid, self._format())
            if writer.schema.type != self.type:
                raise UnusableSchema(
                    f"{frame.name} is a schema of {writer.schema.type}, and not of {self.type}"
                )
            decode = self._decoder(writer, await self._reader(topic), framed[frame.size :], frame)
        except SerdeError as error:
            self._failures.put(key, (error, self.registry.clock.monotonic() + _FAILED_S))
        else:
            self._decoders.put(key, decode)

    async def _reader(self, topic: str) -> RegisteredSchema | None:
        """Returns the reader's schema; None if values are read as they were written."""
        if self._use_latest:
            latest = await self.registry.latest(self._strategy(topic, self._part, None))
            if self._latest.get(topic) != latest:
                # Decoders resolve writers' schemas against the old one, so they are made again.
                self._latest.put(topic, latest)
                for key in [key for key in self._decoders if key[1] == topic]:
                    self._decoders.pop(key, None)
            return latest
        if self._schema is None:
            return None
        return RegisteredSchema(schema=self._schema, imported=await self.registry.imported(self._schema))

    def _format(self) -> str:
        return ""

    @abstractmethod
    def _decoder(
        self, writer: RegisteredSchema, reader: RegisteredSchema | None, rest: bytes, frame: Frame
    ) -> Decode:
        """Returns the function that reads values of a writer's schema. `rest` has the bytes after the frame, in the
        value or in the header; in a header they are the path to a message. Raises UnusableSchema."""


async def _awaited(needed: LookupNeeded) -> None:
    await needed.look_up()


__all__ = ["SchemaDeserializer", "SchemaSerializer", "UndecodableValue", "ValueDoesNotFit", "registry_of"]
