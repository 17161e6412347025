"""confluent-kafka's serializers, which are the oracle of ours."""

from __future__ import annotations

import warnings
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the client's own dependencies
    from confluent_kafka.schema_registry import (
        Schema,
        SchemaReference,
        SchemaRegistryClient,
        header_schema_id_serializer,
        record_subject_name_strategy,
        topic_record_subject_name_strategy,
    )
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
    from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

__all__ = [
    "AvroDeserializer",
    "AvroSerializer",
    "JSONDeserializer",
    "JSONSerializer",
    "ProtobufDeserializer",
    "ProtobufSerializer",
    "Schema",
    "SchemaReference",
    "SchemaRegistryClient",
    "header_schema_id_serializer",
    "record_subject_name_strategy",
    "topic_record_subject_name_strategy",
]


def context(topic: str, headers: Any = None, part: str = "value") -> Any:
    field = MessageField.VALUE if part == "value" else MessageField.KEY
    return SerializationContext(topic, field, headers)


def framing(is_in_header: bool) -> dict[str, Any]:
    return {"schema.id.serializer": header_schema_id_serializer} if is_in_header else {}
