"""Serializers and deserializers: how keys and values become bytes, and values again.

A serializer is any function of (topic, value), a function of the value alone, or an object with `serialize(topic,
value)`. A deserializer is any function of (topic, data) or of the data alone, or an object with `deserialize(topic,
data)`. The names `str`, `bytes`, `json` and `none` stand for those in `builtin`. A serializer that sees headers, or
has to look something up, has the methods of `contract`.

Serializers with a schema registry are loaded when they are used, and need the extra `registry`:

    orders = AvroSerializer("http://localhost:8081", schema)
    async with Producer(bootstrap_servers="localhost:9092", value_serializer=orders) as producer:
        await producer.send("orders", {"id": 7})
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.base.lazy_names import lazy_names
from strandline.serde.builtin import deserializer_for, serializer_for
from strandline.serde.contract import LookupNeeded, RecordDeserializer, RecordSerializer
from strandline.serde.errors import (
    NotFramed,
    RegistryRefused,
    RegistryUnavailable,
    SchemaRegistryError,
    SerdeError,
    UndecodableValue,
    UnknownSchema,
    UnusableSchema,
    ValueDoesNotFit,
)

if TYPE_CHECKING:
    from strandline.serde.avro import AvroDeserializer as AvroDeserializer
    from strandline.serde.avro import AvroSerializer as AvroSerializer
    from strandline.serde.json_schema import JsonSchemaDeserializer as JsonSchemaDeserializer
    from strandline.serde.json_schema import JsonSchemaSerializer as JsonSchemaSerializer
    from strandline.serde.protobuf import ProtobufDeserializer as ProtobufDeserializer
    from strandline.serde.protobuf import ProtobufSerializer as ProtobufSerializer
    from strandline.serde.registry.client import SchemaRegistry as SchemaRegistry
    from strandline.serde.registry.schemas import RegisteredSchema as RegisteredSchema
    from strandline.serde.registry.schemas import Schema as Schema
    from strandline.serde.registry.schemas import SchemaReference as SchemaReference

__all__ = [
    "AvroDeserializer",
    "AvroSerializer",
    "JsonSchemaDeserializer",
    "JsonSchemaSerializer",
    "LookupNeeded",
    "NotFramed",
    "ProtobufDeserializer",
    "ProtobufSerializer",
    "RecordDeserializer",
    "RecordSerializer",
    "RegisteredSchema",
    "RegistryRefused",
    "RegistryUnavailable",
    "Schema",
    "SchemaReference",
    "SchemaRegistry",
    "SchemaRegistryError",
    "SerdeError",
    "UndecodableValue",
    "UnknownSchema",
    "UnusableSchema",
    "ValueDoesNotFit",
    "deserializer_for",
    "serializer_for",
]

_HOMES: Final = {
    "AvroDeserializer": "avro",
    "AvroSerializer": "avro",
    "JsonSchemaDeserializer": "json_schema",
    "JsonSchemaSerializer": "json_schema",
    "ProtobufDeserializer": "protobuf",
    "ProtobufSerializer": "protobuf",
    "SchemaReference": "registry.schemas",
    "RegisteredSchema": "registry.schemas",
    "Schema": "registry.schemas",
    "SchemaRegistry": "registry.client",
}

if not TYPE_CHECKING:  # a checker that sees this would let any name pass
    __getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
