"""confluent-kafka's own registry client and serializers work against the registry."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the client's own dependencies
    from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
    from confluent_kafka.schema_registry.error import SchemaRegistryError
    from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

from google.protobuf import timestamp_pb2

from strandline.testing import RegistryProcess

USER = '{"type":"record","name":"User","fields":[{"name":"name","type":"string"}]}'
USER_2 = (
    '{"type":"record","name":"User","fields":[{"name":"name","type":"string"},'
    '{"name":"age","type":["null","int"],"default":null}]}'
)
INCOMPATIBLE = '{"type":"record","name":"User","fields":[{"name":"age","type":"int"}]}'


@pytest.fixture
def client(strandline_registry: RegistryProcess) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": strandline_registry.url}) as client:
        yield client


def test_schemas_are_registered_found_and_deleted(client: SchemaRegistryClient, subject: str) -> None:
    first = client.register_schema(subject, Schema(USER, "AVRO"))
    assert client.register_schema(subject, Schema(USER, "AVRO")) == first
    second = client.register_schema(subject, Schema(USER_2, "AVRO"))
    assert second > first
    assert client.get_versions(subject) == [1, 2]
    assert client.get_schema(first).schema_str == USER
    assert client.lookup_schema(subject, Schema(USER_2, "AVRO")).version == 2
    assert client.get_latest_version(subject).schema_id == second
    assert subject in client.get_subjects()
    assert client.delete_version(subject, 1) == 1
    assert client.delete_subject(subject) == [2]
    assert sorted(client.delete_subject(subject, permanent=True)) in ([1, 2], [2])


def test_an_incompatible_schema_is_refused(client: SchemaRegistryClient, subject: str) -> None:
    client.register_schema(subject, Schema(USER, "AVRO"))
    assert client.test_compatibility(subject, Schema(USER_2, "AVRO"))
    assert not client.test_compatibility(subject, Schema(INCOMPATIBLE, "AVRO"))
    with pytest.raises(SchemaRegistryError) as refused:
        client.register_schema(subject, Schema(INCOMPATIBLE, "AVRO"))
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 40901)
    client.set_compatibility(subject, "NONE")
    assert client.get_compatibility(subject) == "NONE"
    client.register_schema(subject, Schema(INCOMPATIBLE, "AVRO"))


def test_unknown_things_have_their_codes(client: SchemaRegistryClient) -> None:
    with pytest.raises(SchemaRegistryError) as unknown:
        client.get_latest_version("nobody")
    assert unknown.value.error_code == 40401
    with pytest.raises(SchemaRegistryError) as unknown:
        client.get_schema(999_999)
    assert unknown.value.error_code == 40403


def test_references_are_resolved(client: SchemaRegistryClient, subject: str) -> None:
    imported = '{"type":"record","name":"Street","namespace":"a","fields":[{"name":"n","type":"string"}]}'
    client.register_schema(f"{subject}-street", Schema(imported, "AVRO"))
    text = '{"type":"record","name":"House","namespace":"a","fields":[{"name":"street","type":"a.Street"}]}'
    reference = SchemaReference("a.Street", f"{subject}-street", 1)
    id = client.register_schema(subject, Schema(text, "AVRO", [reference]))
    found = client.get_schema(id)
    assert [each.subject for each in found.references] == [f"{subject}-street"]


def test_avro_serializers_go_and_return(client: SchemaRegistryClient, subject: str) -> None:
    serializer, deserializer = AvroSerializer(client, USER), AvroDeserializer(client)
    context = SerializationContext(subject, MessageField.VALUE)
    assert deserializer(serializer({"name": "Ada"}, context), context) == {"name": "Ada"}


def test_json_serializers_go_and_return(client: SchemaRegistryClient, subject: str) -> None:
    schema = '{"title":"User","type":"object","properties":{"name":{"type":"string"}},"required":["name"]}'
    serializer, deserializer = JSONSerializer(schema, client), JSONDeserializer(schema)
    context = SerializationContext(subject, MessageField.VALUE)
    assert deserializer(serializer({"name": "Ada"}, context), context) == {"name": "Ada"}


def test_protobuf_serializers_register_a_descriptor_that_equals_its_text(
    client: SchemaRegistryClient, subject: str
) -> None:
    kind = timestamp_pb2.Timestamp
    serializer = ProtobufSerializer(kind, client, {"use.deprecated.format": False})
    deserializer = ProtobufDeserializer(kind, {"use.deprecated.format": False})
    context = SerializationContext(subject, MessageField.VALUE)
    assert deserializer(serializer(kind(seconds=5), context), context) == kind(seconds=5)
    found = client.get_latest_version(f"{subject}-value")
    assert found.schema.schema_type == "PROTOBUF"
    assert found.schema.schema_str.startswith('syntax = "proto3";\npackage google.protobuf;\n')
    again = client.register_schema(f"{subject}-value", Schema(found.schema.schema_str, "PROTOBUF"))
    assert again == found.schema_id
