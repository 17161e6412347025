"""Serializers of Protobuf messages with a schema of a registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from strandline.serde.errors import UndecodableValue, UnusableSchema, ValueDoesNotFit
from strandline.serde.framing import GUID_BYTES, Frame, read_indexes, write_indexes
from strandline.serde.protobuf_schemas import (
    SERIALIZED,
    descriptor_text,
    is_known_file,
    message_classes,
    message_path,
)
from strandline.serde.registry.schemas import PROTOBUF, RegisteredSchema, Schema, SchemaReference
from strandline.serde.schema_serializer import Decode, Encode, SchemaDeserializer, SchemaSerializer


class ProtobufSerializer(SchemaSerializer):
    """Writes messages of one class, or dicts, which are turned into such messages. The files that the class's file
    imports are registered too, under their names. Without a class, values are dicts, which are turned into the first
    message of the registry's schema."""

    type: ClassVar[str] = PROTOBUF

    def __init__(self, registry: Any, message_class: Any = None, **options: Any) -> None:
        self._class = message_class
        super().__init__(registry, None, **options)

    def _has_own_schema(self) -> bool:
        return self._class is not None

    def _record_name(self) -> str | None:
        return None if self._class is None else str(self._class.DESCRIPTOR.full_name)

    def _format(self) -> str:
        return "" if self._class is not None else SERIALIZED

    def _message_path(self, registered: RegisteredSchema) -> bytes:
        return write_indexes((0,) if self._class is None else message_path(self._class.DESCRIPTOR))

    async def _own_schema(self, registers: bool) -> Schema:
        return await self._schema_of(self._class.DESCRIPTOR.file, registers)

    async def _schema_of(self, file: Any, registers: bool) -> Schema:
        references = []
        for each in file.dependencies:
            if is_known_file(each.name):
                continue
            schema = await self._schema_of(each, registers)
            if registers:
                await self.registry.register(each.name, schema, normalize=self._normalize)
            registered = await self.registry.lookup(each.name, schema, normalize=self._normalize)
            assert registered.version is not None, "a look-up by subject tells the version"
            references.append(SchemaReference(each.name, each.name, registered.version))
        return Schema(descriptor_text(file), PROTOBUF, tuple(references))

    def _encoder(self, registered: RegisteredSchema) -> Encode:
        return message_encoder(self._class or _first(message_classes(registered)))


def message_encoder(kind: Any) -> Encode:
    """Returns the function that writes messages of a class, or dicts, which it turns into such messages."""
    from google.protobuf.json_format import ParseDict, ParseError
    from google.protobuf.message import EncodeError

    def encode(prefix: bytes, value: Any) -> bytes:
        if value.__class__ is not kind:
            if not isinstance(value, Mapping):
                raise ValueDoesNotFit(
                    f"a {type(value).__name__} is not a message {kind.DESCRIPTOR.full_name}"
                )
            try:
                value = ParseDict(value, kind())
            except (ParseError, TypeError, ValueError) as error:
                raise ValueDoesNotFit(str(error)) from error
        try:
            return bytes(prefix + value.SerializeToString())
        except EncodeError as error:
            raise ValueDoesNotFit(str(error)) from error

    return encode


class ProtobufDeserializer(SchemaDeserializer):
    """Reads messages of one class, or of the classes that the registry's schema describes. Protobuf itself reads
    messages of other versions of a schema."""

    type: ClassVar[str] = PROTOBUF

    def __init__(self, registry: Any, message_class: Any = None, **options: Any) -> None:
        if options.pop("use_latest_version", False):
            raise ValueError("use_latest_version has no meaning for Protobuf: give a message class, or none")
        self._class = message_class
        super().__init__(registry, None, **options)

    def _format(self) -> str:
        return "" if self._class is not None else SERIALIZED

    def _decoder(
        self, writer: RegisteredSchema, reader: RegisteredSchema | None, rest: bytes, frame: Frame
    ) -> Decode:
        from google.protobuf.message import DecodeError

        given = self._class
        classes = {} if given is not None else message_classes(writer)
        in_header = read_indexes(rest, 0)[0] if frame.size == GUID_BYTES else None

        def decode(data: bytes, start: int) -> Any:
            path: tuple[int, ...]
            if in_header is not None:
                path = in_header
            elif len(data) > start and not data[start]:
                path, start = (0,), start + 1
            else:
                path, start = read_indexes(data, start)
            kind = given or classes.get(path)
            if kind is None:
                raise UndecodableValue(f"{frame.name} has no message at {list(path)}")
            message = kind()
            try:
                message.ParseFromString(data[start:])
            except DecodeError as error:
                raise UndecodableValue(
                    f"the value is not a message {kind.DESCRIPTOR.full_name}: {error}"
                ) from error
            return message

        return decode


def _first(classes: dict[tuple[int, ...], Any]) -> Any:
    try:
        return classes[(0,)]
    except KeyError:
        raise UnusableSchema("the schema has no message") from None
