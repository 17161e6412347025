"""`consume --registry` and `produce --schema`, against the serializers of confluent-kafka in both directions."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from strandline.cli.main import main
from strandline.client.sync import Consumer, Producer
from strandline.testing import BrokerProcess, RegistryProcess

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
    from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

from google.protobuf import timestamp_pb2

ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"], "default": None},
            {"name": "raw", "type": "bytes"},
            {
                "name": "price",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
            },
        ],
    }
)
ORDER_ROW = {"id": 7, "note": "hé", "raw": "\u00ff\u0001", "price": "12.50"}
JSON_ORDER = json.dumps({"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}})
PROTO_ORDER = 'syntax = "proto3";\nmessage Stamp { int64 seconds = 1; int32 nanos = 2; }\n'


def run(broker: BrokerProcess, registry: RegistryProcess, *arguments: str) -> int:
    return main([*arguments, "-b", broker.bootstrap, "--registry", registry.url])


@pytest.fixture
def printed(
    strandline_broker: BrokerProcess, strandline_registry: RegistryProcess, capsys: pytest.CaptureFixture[str]
) -> Any:
    def consume(topic: str, *more: str) -> tuple[list[str], str]:
        capsys.readouterr()
        assert run(strandline_broker, strandline_registry, "consume", topic, "--exit", *more) == 0
        found = capsys.readouterr()
        return found.out.splitlines(), found.err

    return consume


def send(broker: BrokerProcess, topic: str, data: bytes | None, headers: Any = None) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send(topic, data, headers=headers)
        producer.flush()


@pytest.mark.parametrize("is_in_header", [False, True])
@pytest.mark.parametrize("format", ["AVRO", "JSON", "PROTOBUF"])
def test_values_of_confluents_serializers_are_printed(
    strandline_broker: BrokerProcess,
    strandline_registry: RegistryProcess,
    subject: str,
    printed: Any,
    format: str,
    is_in_header: bool,
) -> None:
    conf = {"schema.id.serializer": header_schema_id_serializer} if is_in_header else {}
    headers: list[tuple[str, str | bytes | None]] = []
    context = SerializationContext(subject, MessageField.VALUE, headers)
    with SchemaRegistryClient({"url": strandline_registry.url}) as client:
        value: Any
        wanted: Any
        if format == "AVRO":
            from decimal import Decimal

            value = {"id": 7, "note": "hé", "raw": b"\xff\x01", "price": Decimal("12.50")}
            data, wanted = AvroSerializer(client, ORDER, conf=conf)(value, context), ORDER_ROW
        elif format == "JSON":
            data = JSONSerializer(JSON_ORDER, client, conf=conf)({"id": 7}, context)
            wanted = {"id": 7}
        else:
            value = timestamp_pb2.Timestamp(seconds=5)
            serializer = ProtobufSerializer(
                timestamp_pb2.Timestamp, client, {"use.deprecated.format": False, **conf}
            )
            data, wanted = serializer(value, context), "1970-01-01T00:00:05Z"
    send(strandline_broker, subject, data, headers or None)
    lines, _ = printed(subject)
    assert [json.loads(line) for line in lines] == [wanted]


def test_values_that_we_write_are_read_by_confluents_deserializers(
    strandline_broker: BrokerProcess,
    strandline_registry: RegistryProcess,
    subject: str,
    tmp_path: Path,
    printed: Any,
) -> None:
    made = {
        "order.avsc": (ORDER, ORDER_ROW),
        "order.json": (JSON_ORDER, {"id": 7}),
        "order.proto": (PROTO_ORDER, {"seconds": "5"}),
    }
    for name, (schema, row) in made.items():
        topic = f"{subject}-{name.partition('.')[2]}"
        (tmp_path / name).write_text(schema)
        (tmp_path / "rows").write_text(json.dumps(row) + "\n")
        arguments = ("produce", topic, str(tmp_path / "rows"), "--schema", str(tmp_path / name))
        assert run(strandline_broker, strandline_registry, *arguments) == 0
        latest = ("produce", topic, str(tmp_path / "rows"), "--schema", "latest")
        assert run(strandline_broker, strandline_registry, *latest) == 0
        lines, _ = printed(topic)
        assert [json.loads(line) for line in lines] == [row, row]
        settings = {"bootstrap_servers": strandline_broker.bootstrap, "auto_offset_reset": "earliest"}
        with (
            Consumer(group_id=topic, **settings) as consumer,
            SchemaRegistryClient({"url": strandline_registry.url}) as client,
        ):
            consumer.subscribe([topic])
            records: list[Any] = []
            while len(records) < 2:
                records += consumer.poll(10.0)
            context = SerializationContext(topic, MessageField.VALUE)
            if name.endswith("avsc"):
                assert AvroDeserializer(client)(records[0].value, context)["raw"] == b"\xff\x01"
            elif name.endswith("json"):
                assert JSONDeserializer(None, schema_registry_client=client)(records[0].value, context) == {
                    "id": 7
                }
            else:
                deserializer = ProtobufDeserializer(
                    timestamp_pb2.Timestamp, {"use.deprecated.format": False}, client
                )
                assert deserializer(records[0].value, context).seconds == 5


def test_values_that_do_not_fit_and_bytes_that_do_not_decode_are_errors(
    strandline_broker: BrokerProcess,
    strandline_registry: RegistryProcess,
    subject: str,
    tmp_path: Path,
    printed: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "order.json").write_text(JSON_ORDER)
    (tmp_path / "rows").write_text('{"id": 1}\n{"id": "x"}\n{"id": 3}\n')
    arguments = ("produce", subject, str(tmp_path / "rows"), "--schema", str(tmp_path / "order.json"))
    assert run(strandline_broker, strandline_registry, *arguments) == 1
    assert "line 2: the value does not fit the schema" in capsys.readouterr().err
    assert run(strandline_broker, strandline_registry, *arguments, "--keep-going") == 1
    assert run(strandline_broker, strandline_registry, "produce", "nowhere", "--schema", "latest") == 4
    send(strandline_broker, subject, b"plain")
    send(strandline_broker, subject, b"\0\0\x0f\0\0unknown")
    send(strandline_broker, subject, None)
    number = Request(
        f"{strandline_registry.url}/subjects/{subject}-number/versions",
        json.dumps({"schema": '"long"'}).encode(),
        {"Content-Type": "application/json"},
    )
    with urlopen(number) as response:
        framed = b"\0" + json.load(response)["id"].to_bytes(4, "big")
    send(strandline_broker, subject, framed)
    send(strandline_broker, subject, framed + b"\x12")  # decoded, though the one before it was not
    lines, said = printed(subject)
    assert [line for line in lines if line.startswith("{")] == [
        '{"id": 1}',
        '{"id": 1}',
        '{"id": 3}',
    ]
    assert "9" in lines
    assert "its bytes end too early" in said
    assert "plain" in lines
    assert "the registry has no schema id 983040" in said


def test_an_address_that_is_no_registry_is_an_error(
    strandline_broker: BrokerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["consume", "any"], ["produce", "any", "--schema", "latest"]):
        assert main([*command, "-b", strandline_broker.bootstrap, "--registry", "ftp://nowhere"]) == 2
        assert "http://host:port" in capsys.readouterr().err
