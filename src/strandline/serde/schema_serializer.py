"""The serializers and deserializers of all formats: they find the schemas that values name, and frame values."""

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

# From a prefix and a value to the bytes of both, and from the bytes and a position to the value after it.
Encode = Callable[[bytes, Any], bytes]
Decode = Callable[[bytes, int], Any]

# How long an id that does not exist, or a schema that is of no use, is not asked for again.
_FAILED_S: Final = 30.0


class Writer(NamedTuple):
    """How values of one topic are written: the bytes in front, those in the header if there is one, and until when
    the schema counts as the latest."""

    encode: Encode
    prefix: bytes
    header: bytes | None
    until: float | None


def registry_of(given: SchemaRegistry | str | Mapping[str, Any]) -> SchemaRegistry:
    """A registry from itself, its URL, or its settings."""
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
        """The same for keys or for values, with the same registry."""
        other = copy(self)
        other._part = part
        other._header = HEADERS[part]
        other._forget()
        return other

    def use_ports(self, web: Web | None, clock: Clock) -> None:
        self.registry.use_ports(web, clock)

    def _forget(self) -> None:
        raise NotImplementedError


class SchemaSerializer(_RegistrySerde, ABC):
    """Writes values with a schema of a registry.

    `auto_register_schemas` registers the schema under its subject; without it the schema must be there.
    `use_latest_version` writes with the latest schema of the subject instead, `use_schema_id` with one schema that is
    known by its id. `framing` is `prefix` or `header`.
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
        self._forget()

    def _forget(self) -> None:
        self._writers: BoundedCache[str, Writer] = BoundedCache(self.registry.settings.entries_max)

    def serialize_record(self, topic: str, value: Any, headers: list[Any]) -> bytes | None:
        """The bytes of a value; with `framing=header` a header is added. Raises LookupNeeded the first time for a
        topic, ValueDoesNotFit if the value does not fit the schema."""
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
        """The same for code without a client of ours, blocking while the registry is asked."""
        if self._framing == HEADER and headers is None:
            raise ValueError("framing=header needs a list of headers, to which the schema's GUID is added")
        for _ in range(LOOKUPS_MAX):
            try:
                return self.serialize_record(topic, value, [] if headers is None else headers)
            except LookupNeeded as needed:
                run_blocking(_awaited(needed))
        raise RuntimeError("cache.latest.ttl.sec is too short: the schema is old before a value is written")

    async def _look_up(self, topic: str) -> None:
        placed = await self._place(topic)
        encode = self._encoder(placed)
        header = None
        prefix = b""
        if self._framing == HEADER:
            guid = await self._guid(placed)
            header = guid_header(guid) + self._message_path(placed)
        else:
            assert placed.id is not None, "every place but that of a GUID has an id"
            prefix = id_prefix(placed.id) + self._message_path(placed)
        until = (
            self.registry.clock.monotonic() + self.registry.settings.latest_s if self._use_latest else None
        )
        self._writers.put(topic, Writer(encode, prefix, header, until))

    async def _place(self, topic: str) -> RegisteredSchema:
        """Where the schema stands that values of a topic are written with."""
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
        act = self.registry.register if self._auto_register else self.registry.lookup
        return await act(subject, schema, normalize=self._normalize)

    async def _guid(self, placed: RegisteredSchema) -> str:
        guid = placed.guid
        if guid is None and placed.id is not None:
            guid = (await self.registry.by_id(placed.id)).guid
        if guid is None:
            raise RegistryRefused(
                f"the registry tells no GUID of schema id {placed.id}: write with framing=prefix", 200, 0
            )
        return guid

    async def _own_schema(self, registers: bool) -> Schema:
        assert self._schema is not None, "the constructor has checked it"
        return self._schema

    def _has_own_schema(self) -> bool:
        return False

    def _format(self) -> str:
        """The form in which the registry is asked for a schema that is not ours."""
        return ""

    def _message_path(self, placed: RegisteredSchema) -> bytes:
        """The bytes between the id and the value."""
        return b""

    @abstractmethod
    def _record_name(self) -> str | None:
        """The full name of what is written, for the strategies; None if it has none."""

    @abstractmethod
    def _encoder(self, placed: RegisteredSchema) -> Encode:
        """The function that writes values with a schema. Raises UnusableSchema."""


class SchemaDeserializer(_RegistrySerde, ABC):
    """Reads values whose frame names a schema of a registry; both framings are read."""

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
        """`schema` is the reader's; with `use_latest_version` it is the latest of the subject."""
        super().__init__(registry, subject_name_strategy)
        self._schema = Schema(schema, self.type, tuple(references)) if isinstance(schema, str) else schema
        if self._schema is not None and use_latest_version:
            raise ValueError("schema and use_latest_version cannot be combined: leave one out")
        self._use_latest = use_latest_version
        self._from_dict = from_dict
        self._forget()

    def _forget(self) -> None:
        entries_max = self.registry.settings.entries_max
        self._decoders: BoundedCache[Any, Decode] = BoundedCache(entries_max)
        self._failures: BoundedCache[Any, tuple[SerdeError, float]] = BoundedCache(entries_max)
        self._latest: BoundedCache[str, RegisteredSchema] = BoundedCache(entries_max)

    def deserialize_record(self, topic: str, data: bytes | None, headers: Sequence[RecordHeader]) -> Any:
        """The value. Raises LookupNeeded for a schema that was not seen yet, NotFramed, UnknownSchema, UnusableSchema
        or UndecodableValue."""
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
            raise self._missing(topic, key, data if frame is None else frame)
        value = decode(data, start)
        return value if self._from_dict is None else self._from_dict(value)

    def deserialize(self, topic: str, data: bytes | None, headers: Sequence[RecordHeader] = ()) -> Any:
        """The same for code without a client of ours, blocking while the registry is asked."""
        for _ in range(LOOKUPS_MAX):
            try:
                return self.deserialize_record(topic, data, headers)
            except LookupNeeded as needed:
                run_blocking(_awaited(needed))
        raise RuntimeError("cache.capacity is too small: a schema is forgotten before a value is read")

    def _missing(self, topic: str, key: Any, framed: bytes) -> Exception:
        failed = self._failures.get(key)
        if failed is not None and self.registry.clock.monotonic() < failed[1]:
            return failed[0].with_traceback(None)
        frame = read_frame(framed)
        return LookupNeeded(frame.name, partial(self._look_up, topic, key, frame, framed))

    async def _look_up(self, topic: str, key: Any, frame: Frame, framed: bytes) -> None:
        """Makes the decoder of a schema. That it cannot be had is kept too, and raised for each value that names it:
        the registry's failures alone are raised here."""
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
        """The reader's schema; None if values are read as they were written."""
        if self._use_latest:
            latest = await self.registry.latest(self._strategy(topic, self._part, None))
            if self._latest.get(topic) != latest:
                # Values of all writers are resolved against the same schema, so that known decoders are made again.
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
        self, writer: RegisteredSchema, reader: RegisteredSchema | None, after: bytes, frame: Frame
    ) -> Decode:
        """The function that reads values of a writer's schema. `after` is what follows the frame in its place: of a
        header the path to a message. Raises UnusableSchema."""


async def _awaited(needed: LookupNeeded) -> None:
    await needed.look_up()


__all__ = ["SchemaDeserializer", "SchemaSerializer", "UndecodableValue", "ValueDoesNotFit", "registry_of"]
