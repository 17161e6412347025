"""`strandline schemas`, against a registry and real data."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from strandline.cli.main import main
from strandline.client.sync import Producer
from strandline.testing import BrokerProcess, RegistryProcess
from tests.json_shapes import checked_lines
from tests.registry.conftest import Rest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroSerializer
    from confluent_kafka.schema_registry.json_schema import JSONSerializer
    from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

from google.protobuf import timestamp_pb2


def record(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": list(fields)})


A, B = {"name": "a", "type": "string"}, {"name": "b", "type": "int"}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Schemas in files, by what they are."""
    texts = {
        "a.avsc": record(A),
        "ab.avsc": record(A, B),
        "ab-default.avsc": record(A, B | {"default": 0}),
        "int.avsc": record({"name": "a", "type": "int"}),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {name: str(tmp_path / name) for name in texts}


def run(registry: RegistryProcess, *arguments: str) -> int:
    return main(["schemas", *arguments, "--registry", registry.url])


def test_schemas_are_registered_listed_shown_compared_and_deleted(
    strandline_registry: RegistryProcess,
    subject: str,
    files: dict[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(strandline_registry, "register", subject, files["a.avsc"]) == 0
    assert f"{subject} version 1 has the id" in capsys.readouterr().out
    assert run(strandline_registry, "check", subject, files["ab.avsc"]) == 1
    assert "may NOT follow" in capsys.readouterr().out
    assert run(strandline_registry, "register", subject, files["ab.avsc"]) == 1
    assert "incompatible" in capsys.readouterr().err
    assert run(strandline_registry, "check", subject, files["ab-default.avsc"]) == 0
    assert run(strandline_registry, "register", subject, files["ab-default.avsc"]) == 0
    capsys.readouterr()
    assert run(strandline_registry, "list", subject) == 0
    assert "AVRO      1, 2" in capsys.readouterr().out
    assert run(strandline_registry, "show", subject) == 0
    assert f"{subject} version 2" in capsys.readouterr().out
    assert run(strandline_registry, "diff", subject) == 0
    shown = capsys.readouterr().out
    assert '+      "default": 0' in shown
    assert "Readers with version 2 can read data of version 1." in shown
    assert run(strandline_registry, "delete", subject) == 1
    assert f"Delete {subject} version 1, 2? Nobody can be asked here" in capsys.readouterr().err
    assert run(strandline_registry, "delete", subject, "--version", "2", "--yes") == 0
    assert run(strandline_registry, "delete", subject, "--yes") == 0
    assert run(strandline_registry, "show", subject) == 4


def test_documents_of_every_command_have_the_declared_shape(
    strandline_registry: RegistryProcess,
    subject: str,
    files: dict[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    def document(*arguments: str, code: int = 0) -> Any:
        assert run(strandline_registry, *arguments, "--json") == code
        return checked_lines(capsys.readouterr().out, ["schemas", *arguments, "--json"])[0]

    assert document("register", subject, files["a.avsc"])["version"] == 1
    assert document("check", subject, files["ab.avsc"], code=1)["compatible"] is False
    assert document("register", subject, files["ab-default.avsc"])["version"] == 2
    assert document("list", subject)[0]["versions"] == [1, 2]
    assert document("show", subject)["schemaType"] == "AVRO"
    readings = document("diff", subject)["readings"]
    assert [each["can_read"] for each in readings] == [True, True]
    assert document("delete", subject, "--yes")["versions"] == [1, 2]
    assert document("delete", subject, "--permanent", "--yes")["is_permanent"] is True


def test_a_difference_says_for_whom_it_breaks(
    strandline_registry: RegistryProcess,
    rest: Rest,
    subject: str,
    files: dict[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    rest("PUT", f"/config/{subject}", {"compatibility": "NONE"})
    rest.register(subject, record(A))
    rest.register(subject, record(A, B))
    assert run(strandline_registry, "diff", subject) == 1
    shown = capsys.readouterr().out
    assert "Readers with version 2 cannot read data of version 1." in shown
    assert "  - The field 'b' at path '/fields/1' in version 2 has no default value" in shown
    assert "Readers with version 1 can read data of version 2." in shown


def test_a_check_decodes_the_newest_records_of_a_topic(
    strandline_registry: RegistryProcess,
    strandline_broker: BrokerProcess,
    subject: str,
    files: dict[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    context = SerializationContext(subject, MessageField.VALUE)
    with (
        SchemaRegistryClient({"url": strandline_registry.url}) as client,
        Producer(bootstrap_servers=strandline_broker.bootstrap) as producer,
    ):
        serializer = AvroSerializer(client, record(A))
        for number in range(20):
            producer.send(subject, serializer({"a": str(number)}, context))
        producer.send(subject, b"no schema")
        producer.flush()
    common = ("--topic", subject, "--bootstrap-server", strandline_broker.bootstrap, "--json")
    name = f"{subject}-value"
    assert run(strandline_registry, "check", name, files["ab-default.avsc"], *common) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["records"] == {"read": 21, "decoded": 20, "skipped": 1, "failed": []}
    assert run(strandline_registry, "check", name, files["int.avsc"], *common, "--records", "10") == 1
    found = json.loads(capsys.readouterr().out)["records"]
    assert (found["read"], found["decoded"], found["skipped"], len(found["failed"])) == (10, 0, 1, 9)


def test_a_check_decodes_json_and_protobuf(
    strandline_registry: RegistryProcess,
    strandline_broker: BrokerProcess,
    subject: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    schema = {"title": "T", "type": "object", "properties": {"n": {"type": "integer"}}}
    with (
        SchemaRegistryClient({"url": strandline_registry.url}) as client,
        Producer(bootstrap_servers=strandline_broker.bootstrap) as producer,
    ):
        serializer = JSONSerializer(json.dumps(schema), client)
        context = SerializationContext(f"{subject}-json", MessageField.VALUE)
        producer.send(f"{subject}-json", serializer({"n": 5}, context))
        kind = timestamp_pb2.Timestamp
        serializer = ProtobufSerializer(kind, client, {"use.deprecated.format": False})
        context = SerializationContext(f"{subject}-proto", MessageField.VALUE)
        producer.send(f"{subject}-proto", serializer(kind(seconds=7), context))
        producer.flush()
    (tmp_path / "s.json").write_text(json.dumps(schema | {"required": ["m"]}))
    (tmp_path / "s.proto").write_text(
        'syntax = "proto3"; package google.protobuf; message Timestamp { int64 seconds = 1; int32 nanos = 2; }'
    )
    common = ("--bootstrap-server", strandline_broker.bootstrap, "--json")
    for kind_name, file, decoded in (("json", "s.json", 0), ("proto", "s.proto", 1)):
        topic = f"{subject}-{kind_name}"
        run(strandline_registry, "check", f"{topic}-value", str(tmp_path / file), "--topic", topic, *common)
        found = json.loads(capsys.readouterr().out)
        assert (found["records"]["read"], found["records"]["decoded"]) == (1, decoded)


def test_a_registry_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schemas", "list", "--registry", "http://127.0.0.1:1"]) == 3
    assert "is the registry running" in capsys.readouterr().err
