"""Measures our serializers beside confluent-kafka's, and framed values as Arrow columns beside bare ones.

    python -m bench.serde

Each row has ten alternating pairs. The figures are medians of CPU time, which other programs disturb less than the
clock.
"""

from __future__ import annotations

import json
import os
import platform
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from bench.avro_values import SCHEMA, values
from strandline.avro.decoding import AvroDecoder
from strandline.avro.schema import read_schema
from strandline.serde import (
    AvroDeserializer,
    AvroSerializer,
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    Schema,
    SchemaRegistry,
)
from strandline.serde.columns.decoder import RegistryColumns
from strandline.serde.framing import id_prefix
from strandline.testing import running_broker, running_registry

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
    from confluent_kafka.schema_registry import avro as their_avro
    from confluent_kafka.schema_registry import json_schema as their_json
    from confluent_kafka.schema_registry import protobuf as their_protobuf
    from confluent_kafka.serialization import MessageField, SerializationContext

PAIRS = 10
RECORDS = 5_000
ROWS = 200_000
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "serializers.md"
ORDER = {
    "id": 77_000,
    "customer": "customer-77",
    "region": "north",
    "amount": 25.5,
    "quantity": 7,
    "at": 77,
    "is_paid": True,
    "note": "a note of some length",
}
AVRO = json.dumps(SCHEMA).replace(', "logicalType": "timestamp-millis"', "")
JSON = json.dumps(
    {
        "title": "Order",
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "customer": {"type": "string"},
            "region": {"type": "string"},
            "amount": {"type": "number"},
            "quantity": {"type": "integer"},
            "at": {"type": "integer"},
            "is_paid": {"type": "boolean"},
            "note": {"type": "string"},
        },
        "required": ["id"],
    }
)


def message_class() -> Any:
    field = descriptor_pb2.FieldDescriptorProto
    kinds = {int: field.TYPE_INT64, str: field.TYPE_STRING, float: field.TYPE_DOUBLE, bool: field.TYPE_BOOL}
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="bench", syntax="proto3")
    message = file.message_type.add(name="Order")
    for number, (name, value) in enumerate(ORDER.items(), 1):
        message.field.add(name=name, number=number, type=kinds[type(value)], label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("bench.Order"))


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def paired(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[float, float]:
    """Returns the medians of the seconds of both, which run in turn, in alternating order."""
    ours(), theirs()
    found: dict[bool, list[float]] = {True: [], False: []}
    for number in range(PAIRS):
        for is_ours in (number % 2 == 0, number % 2 == 1):
            found[is_ours].append(seconds(ours if is_ours else theirs))
    return median(found[True]), median(found[False])


def serializers(url: str, framing: str) -> list[tuple[str, float, float]]:
    """Returns the records per second of ours and theirs, for each format, writing and reading."""
    client = SchemaRegistryClient({"url": url})
    conf = {"schema.id.serializer": header_schema_id_serializer} if framing == "header" else {}
    registry = SchemaRegistry(url)
    kind = message_class()
    formats: dict[str, tuple[Any, Any, Any, Any, Any]] = {
        "Avro": (
            AvroSerializer(registry, AVRO, framing=framing),
            AvroDeserializer(registry),
            their_avro.AvroSerializer(client, AVRO, conf=conf),
            their_avro.AvroDeserializer(client),
            ORDER,
        ),
        "JSON Schema": (
            JsonSchemaSerializer(registry, JSON, framing=framing),
            JsonSchemaDeserializer(registry),
            their_json.JSONSerializer(JSON, client, conf=conf),
            their_json.JSONDeserializer(JSON, schema_registry_client=client),
            ORDER,
        ),
        "Protobuf": (
            ProtobufSerializer(registry, kind, framing=framing),
            ProtobufDeserializer(registry, kind),
            their_protobuf.ProtobufSerializer(kind, client, {**conf, "use.deprecated.format": False}),
            their_protobuf.ProtobufDeserializer(kind, {"use.deprecated.format": False}),
            kind(**ORDER),
        ),
    }
    rows = []
    for name, (writer, reader, their_writer, their_reader, value) in formats.items():
        topic = f"bench-{name.partition(' ')[0].lower()}-{framing}"
        headers: list[Any] = []
        data = writer.serialize(topic, value, headers)
        context = SerializationContext(topic, MessageField.VALUE, [])
        reading = SerializationContext(topic, MessageField.VALUE, headers)
        assert their_reader(data, reading) == reader.deserialize(topic, data, headers) == value

        def write(writer: Any = writer, value: Any = value, topic: str = topic) -> None:
            for _ in range(RECORDS):
                writer.serialize_record(topic, value, [])

        def write_theirs(writer: Any = their_writer, value: Any = value, context: Any = context) -> None:
            for _ in range(RECORDS):
                context.headers = []
                writer(value, context)

        def read(reader: Any = reader, data: Any = data, topic: str = topic, headers: Any = headers) -> None:
            for _ in range(RECORDS):
                reader.deserialize_record(topic, data, headers)

        def read_theirs(reader: Any = their_reader, data: Any = data, context: Any = reading) -> None:
            for _ in range(RECORDS):
                reader(data, context)

        for what, ours, theirs in (("written", write, write_theirs), ("read", read, read_theirs)):
            mine, others = paired(ours, theirs)
            rows.append((f"{name}, {what}, {framing}", RECORDS / mine, RECORDS / others))
    return rows


def columns(url: str) -> list[tuple[str, float, float]]:
    """Returns the rows per second of framed values, and of bare Avro."""
    registry = SchemaRegistry(url)
    bare = (values() * (ROWS // 50_000 + 1))[:ROWS]
    schema = Schema(json.dumps(SCHEMA))
    placed = registry.blocking(lambda each: each.register("bench-columns-value", schema))
    wider = Schema(
        json.dumps({**SCHEMA, "fields": [*SCHEMA["fields"], {"name": "x", "type": "int", "default": 0}]})
    )
    second = registry.blocking(lambda each: each.register("bench-columns-value", wider))
    decoder = AvroDecoder(read_schema(SCHEMA))
    framed = registry.blocking(lambda each: RegistryColumns.open(each, schema=schema))
    plain = pa.array(bare, pa.binary())
    one = pa.array([id_prefix(placed.id) + each for each in bare], pa.binary())
    two = pa.array(
        [
            id_prefix(second.id) + each + b"\0" if number % 2 else id_prefix(placed.id) + each
            for number, each in enumerate(bare)
        ],
        pa.binary(),
    )
    assert framed.decode_blocking(one).columns.equals(decoder.decode(plain)[0])
    assert framed.decode_blocking(two).columns.equals(decoder.decode(plain)[0])
    rows = []
    for name, data in (("one writer's schema", one), ("two writers' schemas, row by row", two)):
        mine, others = paired(
            lambda data=data: framed.decode_blocking(data),
            lambda: decoder.decode(plain),  # type: ignore[misc]
        )
        rows.append((name, ROWS / mine, ROWS / others))
    return rows


def columns_of_other_formats(url: str) -> list[tuple[str, float, float]]:
    """Returns the rows per second of JSON and Protobuf values as Arrow columns: ours, and confluent-kafka's
    deserializer whose results Arrow makes columns of."""
    registry, client, kind = SchemaRegistry(url), SchemaRegistryClient({"url": url}), message_class()
    their_message = their_protobuf.ProtobufDeserializer(kind, {"use.deprecated.format": False})
    their_object = their_json.JSONDeserializer(JSON, schema_registry_client=client)
    names = list(ORDER)

    def objects(data: list[bytes], context: Any) -> Any:
        return pa.Table.from_pylist([their_object(each, context) for each in data])

    def messages(data: list[bytes], context: Any) -> Any:
        found = [their_message(each, context) for each in data]
        return pa.table({name: [getattr(each, name) for each in found] for name in names})

    formats: list[tuple[str, Any, Callable[[list[bytes], Any], Any]]] = [
        ("JSON Schema", JsonSchemaSerializer(registry, JSON), objects),
        ("Protobuf", ProtobufSerializer(registry, kind), messages),
    ]
    rows = []
    for name, writer, theirs in formats:
        topic = f"bench-columns-{name.partition(' ')[0].lower()}"
        context = SerializationContext(topic, MessageField.VALUE, [])
        value = ORDER if name.startswith("JSON") else kind(**ORDER)
        data = [writer.serialize(topic, value)] * RECORDS
        subject = f"{topic}-value"
        ours = registry.blocking(lambda each, subject=subject: RegistryColumns.open(each, subject=subject))
        framed = pa.array(data, pa.binary())
        columns = ours.decode_blocking(framed).columns
        assert columns.field("customer").to_pylist() == theirs(data, context)["customer"].to_pylist()
        mine, others = paired(
            lambda ours=ours, framed=framed: ours.decode_blocking(framed),  # type: ignore[misc]
            lambda theirs=theirs, data=data, context=context: theirs(data, context),  # type: ignore[misc]
        )
        rows.append((name, RECORDS / mine, RECORDS / others))
    return rows


def main() -> None:
    with (
        TemporaryDirectory() as directory,
        running_broker() as broker,
        running_registry(broker.bootstrap, Path(directory) / "log") as registry,
    ):
        rows = [*serializers(registry.url, "prefix"), *serializers(registry.url, "header")]
        arrow = columns(registry.url)
        others = columns_of_other_formats(registry.url)
    load = os.getloadavg()[0]
    lines = [
        "# Serializers",
        "",
        f"`python -m bench.serde` on {os.cpu_count()} cores ({platform.machine()}, load average {load:.1f}).",
        f"One record with eight fields, written or read {RECORDS:,} times; {PAIRS} alternating pairs, medians of CPU",
        "time.",
        "",
        "| what | ours, records/s | confluent-kafka's | ratio |",
        "| --- | ---: | ---: | ---: |",
        *(f"| {name} | {mine:,.0f} | {theirs:,.0f} | {mine / theirs:.2f} |" for name, mine, theirs in rows),
        "",
        f"Arrow columns of {ROWS:,} Avro values, framed beside bare ones:",
        "",
        "| what | framed, rows/s | bare, rows/s | ratio |",
        "| --- | ---: | ---: | ---: |",
        *(f"| {name} | {mine:,.0f} | {theirs:,.0f} | {mine / theirs:.2f} |" for name, mine, theirs in arrow),
        "",
        f"Arrow columns of {RECORDS:,} values of other formats, beside confluent-kafka and pyarrow, which makes",
        "columns of what its deserializer returns:",
        "",
        "| what | ours, rows/s | confluent-kafka and pyarrow, rows/s | ratio |",
        "| --- | ---: | ---: | ---: |",
        *(f"| {name} | {mine:,.0f} | {theirs:,.0f} | {mine / theirs:.2f} |" for name, mine, theirs in others),
        "",
    ]
    PAGE.write_text("\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
