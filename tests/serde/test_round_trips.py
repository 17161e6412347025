"""Values go from our serializers to confluent-kafka's deserializers and back, in all formats and both framings."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, struct_pb2, timestamp_pb2

from strandline.serde import (
    AvroDeserializer,
    AvroSerializer,
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    SchemaReference,
    SchemaRegistry,
)
from strandline.testing import RegistryProcess
from tests.serde import confluent

ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"], "default": None},
            {"name": "lines", "type": {"type": "array", "items": "double"}},
            {"name": "tags", "type": {"type": "map", "values": "int"}},
            {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {
                "name": "price",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2},
            },
            {"name": "key", "type": {"type": "string", "logicalType": "uuid"}},
        ],
    }
)
ORDER_VALUE = {
    "id": 7,
    "note": "hé",
    "lines": [1.5, -2.0],
    "tags": {"a": 1},
    "state": "PAID",
    "at": datetime(2026, 11, 18, 12, 0, 0, 123000, UTC),
    "price": Decimal("12.50"),
    "key": UUID(int=5),
}
JSON_ORDER = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Order",
        "type": "object",
        "properties": {"id": {"type": "integer"}, "note": {"type": "string"}},
        "required": ["id"],
    }
)
JSON_VALUE = {"id": 7, "note": "hé"}


def proto_classes() -> dict[str, Any]:
    """Classes of two files, one of which imports the other: Address in one, Person and Person.Phone in the other."""
    pool = descriptor_pool.DescriptorPool()
    field = descriptor_pb2.FieldDescriptorProto
    pool.Add(descriptor_pb2.FileDescriptorProto.FromString(timestamp_pb2.DESCRIPTOR.serialized_pb))
    address = descriptor_pb2.FileDescriptorProto(name="shop/address.proto", package="shop", syntax="proto3")
    message = address.message_type.add(name="Address")
    message.field.add(name="street", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    pool.Add(address)
    person = descriptor_pb2.FileDescriptorProto(name="shop/person.proto", package="shop", syntax="proto3")
    person.dependency.extend(["shop/address.proto", "google/protobuf/timestamp.proto"])
    person.message_type.add(name="First")
    message = person.message_type.add(name="Person")
    message.field.add(name="name", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    message.field.add(
        name="home",
        number=2,
        type=field.TYPE_MESSAGE,
        type_name=".shop.Address",
        label=field.LABEL_OPTIONAL,
    )
    message.field.add(
        name="born",
        number=3,
        type=field.TYPE_MESSAGE,
        type_name=".google.protobuf.Timestamp",
        label=field.LABEL_OPTIONAL,
    )
    message.nested_type.add(name="Email")
    phone = message.nested_type.add(name="Phone")
    phone.field.add(name="number", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    pool.Add(person)
    found = pool.FindFileByName("shop/person.proto").message_types_by_name["Person"]
    return {
        "Person": message_factory.GetMessageClass(found),
        "Phone": message_factory.GetMessageClass(found.nested_types_by_name["Phone"]),
        "Address": message_factory.GetMessageClass(found.fields_by_name["home"].message_type),
    }


CLASSES = proto_classes()


@pytest.fixture
def registry(strandline_registry: RegistryProcess) -> SchemaRegistry:
    return SchemaRegistry(strandline_registry.url)


@pytest.fixture
def theirs(strandline_registry: RegistryProcess) -> Any:
    with confluent.SchemaRegistryClient({"url": strandline_registry.url}) as client:
        yield client


def pairs(format: str, registry: SchemaRegistry, theirs: Any, framing: str) -> tuple[Any, Any, Any, Any, Any]:
    """Our serializer and deserializer, theirs, and a value."""
    conf = confluent.framing(framing == "header")
    match format:
        case "AVRO":
            return (
                AvroSerializer(registry, ORDER, framing=framing),
                AvroDeserializer(registry),
                confluent.AvroSerializer(theirs, ORDER, conf=conf),
                confluent.AvroDeserializer(theirs),
                ORDER_VALUE,
            )
        case "JSON":
            return (
                JsonSchemaSerializer(registry, JSON_ORDER, framing=framing),
                JsonSchemaDeserializer(registry),
                confluent.JSONSerializer(JSON_ORDER, theirs, conf=conf),
                confluent.JSONDeserializer(JSON_ORDER, schema_registry_client=theirs),
                JSON_VALUE,
            )
        case _:
            kind = CLASSES[format]
            value = {
                "Person": lambda: CLASSES["Person"](
                    name="Ada", home=CLASSES["Address"](street="S"), born={"seconds": 5}
                ),
                "Phone": lambda: CLASSES["Phone"](number="12"),
            }[format]()
            conf = {**conf, "use.deprecated.format": False}
            return (
                ProtobufSerializer(registry, kind, framing=framing),
                ProtobufDeserializer(registry, kind),
                confluent.ProtobufSerializer(kind, theirs, conf=conf),
                # Without a client: one that has registered a schema gives text where a descriptor is expected.
                confluent.ProtobufDeserializer(kind, {"use.deprecated.format": False}),
                value,
            )


@pytest.mark.parametrize("framing", ["prefix", "header"])
@pytest.mark.parametrize("format", ["AVRO", "JSON", "Person", "Phone"])
def test_each_side_reads_values_that_the_other_wrote(
    registry: SchemaRegistry, theirs: Any, topic: str, format: str, framing: str
) -> None:
    ours, our_reader, their_writer, their_reader, value = pairs(format, registry, theirs, framing)
    our_headers: list[Any] = []
    their_headers: list[Any] = []
    data = ours.serialize(topic, value, our_headers)
    expected = their_writer(value, confluent.context(topic, their_headers))
    assert data == expected
    assert our_headers == their_headers
    assert bool(our_headers) == (framing == "header")
    assert their_reader(data, confluent.context(topic, our_headers)) == value
    assert our_reader.deserialize(topic, expected, their_headers) == value


@pytest.mark.parametrize("part", ["key", "value"])
def test_keys_have_a_subject_and_a_header_of_their_own(
    registry: SchemaRegistry, theirs: Any, topic: str, part: str
) -> None:
    headers: list[Any] = []
    serializer = AvroSerializer(registry, '"string"', framing="header").for_part(part)
    data = serializer.serialize(topic, "key-7", headers)
    assert [name for name, _ in headers] == [f"__{part}_schema_id"]
    assert theirs.get_latest_version(f"{topic}-{part}").version == 1
    assert confluent.AvroDeserializer(theirs)(data, confluent.context(topic, headers, part)) == "key-7"
    assert AvroDeserializer(registry).for_part(part).deserialize(topic, data, headers) == "key-7"


@pytest.mark.parametrize(
    ("ours", "theirs_named", "subject"),
    [
        ("record", confluent.record_subject_name_strategy, "shop.Order"),
        ("topic_record", confluent.topic_record_subject_name_strategy, "{topic}-shop.Order"),
    ],
)
def test_subjects_are_named_as_confluent_names_them(
    registry: SchemaRegistry, theirs: Any, topic: str, ours: str, theirs_named: Any, subject: str
) -> None:
    conf = {"subject.name.strategy": theirs_named}
    data = AvroSerializer(registry, ORDER, subject_name_strategy=ours).serialize(topic, ORDER_VALUE)
    assert theirs.get_latest_version(subject.format(topic=topic)).schema_id == int.from_bytes(
        data[1:5], "big"
    )
    expected = confluent.AvroSerializer(theirs, ORDER, conf=conf)(ORDER_VALUE, confluent.context(topic))
    assert data == expected


def test_protobuf_without_a_class_gives_messages_of_the_registrys_schema(
    registry: SchemaRegistry, theirs: Any, topic: str
) -> None:
    person = CLASSES["Person"](name="Ada", home={"street": "S"}, born={"seconds": 5})
    data = ProtobufSerializer(registry, CLASSES["Person"]).serialize(topic, person)
    found = ProtobufDeserializer(registry).deserialize(topic, data)
    assert (found.name, found.home.street, found.born.seconds) == ("Ada", "S", 5)
    assert found.DESCRIPTOR.full_name == "shop.Person"


def test_protobuf_takes_dicts(registry: SchemaRegistry, theirs: Any, topic: str) -> None:
    data = ProtobufSerializer(registry, CLASSES["Phone"]).serialize(topic, {"number": "12"})
    assert ProtobufDeserializer(registry).deserialize(topic, data).number == "12"
    theirs.register_schema(
        f"{topic}-x-value", confluent.Schema('syntax = "proto3"; message A { int32 b = 1; }', "PROTOBUF")
    )
    latest = ProtobufSerializer(registry, use_latest_version=True)
    data = latest.serialize(f"{topic}-x", {"b": 3})
    assert ProtobufDeserializer(registry).deserialize(f"{topic}-x", data).b == 3
    value = ProtobufSerializer(registry, struct_pb2.Value).serialize(
        f"{topic}-s", struct_pb2.Value(bool_value=True)
    )
    assert ProtobufDeserializer(registry, struct_pb2.Value).deserialize(f"{topic}-s", value).bool_value


def test_a_map_in_a_descriptor_is_a_map_without_a_class(registry: SchemaRegistry, topic: str) -> None:
    value = struct_pb2.Struct()
    value.update({"a": 1.5})
    data = ProtobufSerializer(registry, struct_pb2.Struct).serialize(topic, value)
    assert ProtobufDeserializer(registry).deserialize(topic, data).fields["a"].number_value == 1.5


def test_references_of_avro_are_resolved_in_both_directions(
    registry: SchemaRegistry, theirs: Any, topic: str
) -> None:
    street = '{"type":"record","name":"Street","namespace":"a","fields":[{"name":"n","type":"string"}]}'
    city = '{"type":"record","name":"City","namespace":"a","fields":[{"name":"main","type":"a.Street"}]}'
    house = '{"type":"record","name":"House","namespace":"a","fields":[{"name":"in","type":"a.City"}]}'
    theirs.register_schema(f"{topic}-street", confluent.Schema(street, "AVRO"))
    theirs.register_schema(
        f"{topic}-city",
        confluent.Schema(city, "AVRO", [confluent.SchemaReference("a.Street", f"{topic}-street", 1)]),
    )
    value = {"in": {"main": {"n": "x"}}}
    ours = AvroSerializer(registry, house, references=[SchemaReference("a.City", f"{topic}-city", 1)])
    data = ours.serialize(topic, value)
    assert confluent.AvroDeserializer(theirs)(data, confluent.context(topic)) == value
    schema = confluent.Schema(house, "AVRO", [confluent.SchemaReference("a.City", f"{topic}-city", 1)])
    expected = confluent.AvroSerializer(theirs, schema)(value, confluent.context(topic))
    assert data == expected
    assert AvroDeserializer(registry).deserialize(topic, expected) == value


def test_references_of_json_schema_are_resolved_in_both_directions(
    registry: SchemaRegistry, theirs: Any, topic: str
) -> None:
    street = '{"$id":"street.json","type":"object","properties":{"n":{"type":"string"}},"required":["n"]}'
    house = '{"title":"House","type":"object","properties":{"in":{"$ref":"street.json"}}}'
    theirs.register_schema(f"{topic}-street", confluent.Schema(street, "JSON"))
    ours = JsonSchemaSerializer(
        registry, house, references=[SchemaReference("street.json", f"{topic}-street", 1)]
    )
    value = {"in": {"n": "x"}}
    data = ours.serialize(topic, value)
    schema = confluent.Schema(house, "JSON", [confluent.SchemaReference("street.json", f"{topic}-street", 1)])
    reader = confluent.JSONDeserializer(schema, schema_registry_client=theirs)
    assert reader(data, confluent.context(topic)) == value
    expected = confluent.JSONSerializer(schema, theirs)(value, confluent.context(topic))
    assert JsonSchemaDeserializer(registry).deserialize(topic, expected) == value
    with pytest.raises(ValueError, match=r"in: 'n' is a required property"):
        ours.serialize(topic, {"in": {}})


def test_values_of_an_old_schema_are_read_with_a_newer_one_and_back(
    registry: SchemaRegistry, theirs: Any, topic: str
) -> None:
    old = '{"type":"record","name":"User","fields":[{"name":"name","type":"string"}]}'
    new = (
        '{"type":"record","name":"User","fields":[{"name":"name","type":"string"},'
        '{"name":"age","type":"int","default":-1}]}'
    )
    written_old = AvroSerializer(registry, old).serialize(topic, {"name": "Ada"})
    written_new = confluent.AvroSerializer(theirs, new)({"name": "Bo", "age": 4}, confluent.context(topic))
    as_new, as_old = AvroDeserializer(registry, new), AvroDeserializer(registry, old)
    assert as_new.deserialize(topic, written_old) == {"name": "Ada", "age": -1}
    assert as_old.deserialize(topic, written_new) == {"name": "Bo"}
    latest = AvroDeserializer(registry, use_latest_version=True)
    assert latest.deserialize(topic, written_old) == {"name": "Ada", "age": -1}
    newest = new.replace("]}", ',{"name":"at","type":"long","default":0}]}')
    AvroSerializer(registry, newest).serialize(topic, {"name": "Cy"})
    registry._latest.clear()  # as after cache.latest.ttl.sec
    third = AvroSerializer(registry, newest).serialize(topic, {"name": "Cy"})
    assert latest.deserialize(topic, third) == {"name": "Cy", "age": -1, "at": 0}
    assert latest.deserialize(topic, written_old) == {"name": "Ada", "age": -1, "at": 0}
    their_reader = confluent.AvroDeserializer(theirs, new)
    assert their_reader(written_old, confluent.context(topic)) == {"name": "Ada", "age": -1}


def test_objects_become_dicts_and_dicts_objects(registry: SchemaRegistry, topic: str) -> None:
    schema = '{"type":"record","name":"User","fields":[{"name":"name","type":"string"}]}'
    writer = AvroSerializer(registry, schema, to_dict=lambda name: {"name": name})
    reader = AvroDeserializer(registry, from_dict=lambda value: value["name"])
    assert reader.deserialize(topic, writer.serialize(topic, "Ada")) == "Ada"
