"""Values of a schema registry in Spark: typed columns from the source, `to_registry`, pipelines with dead letters."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strandline.client.sync import Admin, Producer
from strandline.pipeline.runtime.runner import Runner
from strandline.pipeline.runtime.validation import analyse
from strandline.pipeline.spec.reader import load
from strandline.pipeline.spec.yaml_lines import SpecError
from strandline.serde import (
    AvroDeserializer,
    AvroSerializer,
    JsonSchemaSerializer,
    ProtobufSerializer,
    Schema,
    SchemaRegistry,
    UnknownSchema,
)
from strandline.spark import exactly_once, to_registry
from strandline.testing import RegistryProcess, running_registry
from strandline.testing.clusters import wait_until
from tests.spark.topics import rows_of

FIRST = '{"type":"record","name":"Order","fields":[{"name":"id","type":"int"}]}'
SECOND = (
    '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},'
    '{"name":"note","type":"string","default":"none"}]}'
)
THIRD = (
    '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},'
    '{"name":"note","type":"string","default":"none"},{"name":"more","type":["null","int"],"default":null}]}'
)
OUT = '{"type":"record","name":"Out","fields":[{"name":"id","type":"int"},{"name":"note","type":["null","string"]}]}'
PIPELINE = """
pipeline: registry
brokers: {brokers}
checkpoint: checkpoint
spark:
  master: local[2]
  settings: {{spark.driver.extraJavaOptions: -XX:TieredStopAtLevel=1 -XX:+UseSerialGC}}
sources:
  orders:
    topic: {topic}
    max-records-per-batch: 20
    decode: {{format: {format}, registry: '{registry}'}}
{transform}
sinks:
  - from: {stage}
    topic: {topic}-out
    partitions: 1
    encode: {{format: avro, registry: '{registry}', schema-file: out.avsc}}
"""


@pytest.fixture(scope="module")
def registry_process(broker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    with running_registry(broker.bootstrap, tmp_path_factory.mktemp("registry") / "log") as process:
        yield process


@pytest.fixture
def registry(registry_process: RegistryProcess) -> str:
    return registry_process.url


def reader(spark: Any, bootstrap: str, topic: str, registry: str) -> Any:
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "registry": registry}
    return spark.read.format("strandline").options(**options)


def spec_in(directory: Path, **values: str) -> Any:
    (directory / "out.avsc").write_text(OUT)
    path = directory / "spec.yaml"
    path.write_text(PIPELINE.format(**{"format": "avro", "transform": "", "stage": "orders", **values}))
    return path


def test_the_source_gives_typed_columns_of_several_writers_and_both_framings(
    spark: Any, bootstrap: str, topic: str, admin: Admin, registry: str
) -> None:
    admin.create_topic(topic, partitions=1)
    old, new = AvroSerializer(registry, FIRST), AvroSerializer(registry, SECOND, framing="header")
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(10):
            headers: list[Any] = []
            producer.send(topic, old.serialize(topic, {"id": number}))
            value = new.serialize(topic, {"id": number + 100, "note": "n"}, headers)
            producer.send(topic, value, headers=headers)
        for bad in (b"\0\0\x0f\xff\xffx", b"no", old.serialize(topic, {"id": 1}) + b"x", None):
            producer.send(topic, bad)
    assert "headers" not in reader(spark, bootstrap, topic, registry).load().columns
    rows = reader(spark, bootstrap, topic, registry).option("includeHeaders", "true").load()
    assert dict(rows.select("decoded.*").dtypes) == {"id": "bigint", "note": "string"}
    found = sorted(rows.collect(), key=lambda row: row.offset)
    good, bad_rows = found[:20], found[20:]
    assert {(row.decoded.id, row.decoded.note) for row in good} == {
        *((number, "none") for number in range(10)),
        *((number + 100, "n") for number in range(10)),
    }
    assert all((row.headers is not None) == (row.decoded.id >= 100) for row in good)
    assert [row.decoded for row in bad_rows] == [None] * 4
    errors = [row.decode_error and row.decode_error.partition(":")[0] for row in bad_rows]
    assert errors == ["unknown-schema", "not-framed", "undecodable", None]


def test_a_query_stays_open_while_writers_register_schemas(
    spark: Any, bootstrap: str, topic: str, admin: Admin, registry: str, tmp_path: Path
) -> None:
    for name in (topic, f"{topic}-out"):
        admin.create_topic(name, partitions=1)
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "registry": registry}
    options["startingOffsets"] = "earliest"

    def write(schema: str, first: int, **fields: Any) -> None:
        serializer = AvroSerializer(registry, schema)
        with Producer(bootstrap_servers=bootstrap, value_serializer=serializer) as producer:
            for number in range(first, first + 10):
                producer.send(topic, {"id": number, **fields})

    def written() -> list[bytes | None]:
        return [row.value for row in rows_of(bootstrap, f"{topic}-out", 1)]

    write(FIRST, 0)  # older than the reader's schema: the default is filled in
    write(SECOND, 10, note="second")
    rows = spark.readStream.format("strandline").options(**options).load()
    rows = rows.selectExpr("concat_ws(' ', decoded.id, decoded.note, decode_error) AS value")
    query = (
        exactly_once(rows, bootstrap, topic=f"{topic}-out")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="100 milliseconds")
        .start()
    )
    try:
        wait_until(lambda: len(written()) >= 20, 60)
        write(THIRD, 20, note="third", more=3)  # registered while the query runs
        wait_until(lambda: len(written()) >= 30, 60)
        write(FIRST, 30)
        wait_until(lambda: len(written()) >= 40, 60)
        assert query.isActive
    finally:
        query.stop()
    notes = [note for note in ("none", "second", "third", "none") for _ in range(10)]
    assert written() == [f"{number} {note}".encode() for number, note in enumerate(notes)]


def test_to_registry_writes_values_that_confluents_format_has(
    spark: Any, bootstrap: str, topic: str, admin: Admin, registry: str
) -> None:
    from pyspark.sql import functions as f

    admin.create_topic(topic, partitions=1)
    rows = spark.sql("SELECT 7 AS id, 'a' AS note UNION ALL SELECT 8, NULL")
    value = to_registry(f.struct("id", "note"), registry=registry, topic=topic, schema=OUT)
    rows = rows.select(value.alias("value"))
    rows.write.format("strandline").options(**{"kafka.bootstrap.servers": bootstrap}).option(
        "topic", topic
    ).mode("append").save()
    deserializer = AvroDeserializer(registry)
    found = [deserializer.deserialize(topic, row.value) for row in rows_of(bootstrap, topic, 1)]
    assert sorted(found, key=lambda each: each["id"]) == [{"id": 7, "note": "a"}, {"id": 8, "note": None}]
    wrong = spark.sql("SELECT 'x' AS id, 'a' AS note")
    latest = to_registry(f.struct("id", "note"), registry=registry, topic=topic)
    with pytest.raises(Exception, match=r"Out\.id"):
        wrong.select(latest.alias("value")).collect()


@pytest.mark.parametrize("format", ["json", "protobuf"])
def test_pipelines_decode_json_and_protobuf(
    spark: Any, bootstrap: str, topic: str, admin: Admin, registry: str, tmp_path: Path, format: str
) -> None:
    admin.create_topic(topic, partitions=1)
    serializer: Any
    if format == "json":
        schema = '{"type":"object","properties":{"id":{"type":"integer"},"note":{"type":"string"}}}'
        serializer = JsonSchemaSerializer(registry, schema)
    else:
        text = 'syntax = "proto3"; message Order { int64 id = 1; string note = 2; }'
        SchemaRegistry(registry).blocking(lambda r: r.register(f"{topic}-value", Schema(text, "PROTOBUF")))
        serializer = ProtobufSerializer(registry, use_latest_version=True)
    with Producer(bootstrap_servers=bootstrap, value_serializer=serializer) as producer:
        for number in range(10):
            producer.send(topic, {"id": number, "note": "n"})
        producer.send(topic, {"id": 1 << 40, "note": "too large for the sink"})
    Runner(
        load(spec_in(tmp_path, brokers=bootstrap, topic=topic, registry=registry, format=format)), spark=spark
    ).run()
    deserializer = AvroDeserializer(registry)
    found = [deserializer.deserialize("x", row.value) for row in rows_of(bootstrap, f"{topic}-out", 1)]
    assert found == [{"id": number, "note": "n"} for number in range(10)]
    (letter,) = rows_of(bootstrap, f"{topic}.dlq", 1)
    headers = dict(letter.headers)
    assert headers["dlq.stage"] == f"sink {topic}-out".encode()
    assert headers["dlq.error"].startswith(b"does-not-fit: ")
    assert b"id" in headers["dlq.error"]


def test_a_registry_that_is_away_is_waited_for_and_makes_no_dead_letters(
    spark: Any, broker: Any, bootstrap: str, topic: str, admin: Admin, registry: str, tmp_path: Path
) -> None:
    admin.create_topic(topic, partitions=1)
    admin.create_topic(f"{topic}-kept", partitions=1)
    with running_registry(bootstrap, tmp_path / "log") as process:
        path = spec_in(tmp_path, brokers=bootstrap, topic=topic, registry=process.url)
        serializer = AvroSerializer(process.url, SECOND)
        with Producer(bootstrap_servers=bootstrap, value_serializer=serializer) as producer:
            producer.send(topic, {"id": 1, "note": "before"})
        Runner(load(path), spark=spark).run()
        newer = AvroSerializer(process.url, THIRD)
        data = newer.serialize(topic, {"id": 2, "note": "while away", "more": 5})
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send(topic, data)
    failures: list[BaseException] = []

    def run() -> None:
        try:
            Runner(load(path), spark=spark).run()
        except BaseException as error:
            failures.append(error)

    running = threading.Thread(target=run)
    running.start()
    time.sleep(4)
    assert running.is_alive(), failures
    assert len(rows_of(bootstrap, f"{topic}-out", 1)) == 1
    process.start()
    try:
        running.join(120)
        assert not running.is_alive()
    finally:
        process.stop()
    assert not failures
    found = [
        AvroDeserializer(registry).deserialize("x", row.value)
        for row in rows_of(bootstrap, f"{topic}-out", 1)
    ]
    assert [each["id"] for each in found] == [1, 2]
    assert rows_of(bootstrap, f"{topic}.dlq", 1) == []


def test_a_spec_that_cannot_stand_says_where(
    spark: Any, bootstrap: str, topic: str, admin: Admin, registry: str, tmp_path: Path
) -> None:
    admin.create_topic(topic, partitions=1)
    path = spec_in(tmp_path, brokers=bootstrap, topic=topic, registry=registry)
    with pytest.raises(SpecError, match=rf"{topic}-value"):
        Runner(load(path), spark=spark).run()
    path.write_text(path.read_text().replace("format: avro, registry", "format: protobuf, rigestry"))
    with pytest.raises(SpecError, match="registry"):
        load(path)


def test_validation_registers_nothing_and_does_not_wait(
    spark: Any, bootstrap: str, topic: str, admin: Admin, registry: str, tmp_path: Path
) -> None:
    admin.create_topic(topic, partitions=1)
    client = SchemaRegistry(registry)
    client.blocking(lambda r: r.register(f"{topic}-value", Schema(SECOND)))
    path = spec_in(tmp_path, brokers=bootstrap, topic=topic, registry=registry)
    assert analyse(spark, load(path)).output() is not None
    with pytest.raises(UnknownSchema):
        client.blocking(lambda r: r.latest(f"{topic}-out-value"))
    settings = "registry-settings: {max.retries: 0}, registry: 'http://127.0.0.1:1'"
    path.write_text(path.read_text().replace(f"registry: '{registry}'", settings))
    with pytest.raises(SpecError, match="does not respond"):
        analyse(spark, load(path))


MORTALITY = """
import os, signal
from pathlib import Path
from strandline.spark.sink.batch_transaction import BatchTransaction

FLAG = Path(__file__).with_name("died")
commit = BatchTransaction.commit
commits = []


def die_before_the_second(self):
    commits.append(self)
    if len(commits) == 2 and not FLAG.exists():
        FLAG.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    commit(self)


def die_once(rows):
    BatchTransaction.commit = die_before_the_second
    return rows
"""


def run(path: Path) -> int:
    command = [sys.executable, "-m", "strandline.cli.main", "pipeline", "run", str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert ran.returncode in (0, -signal.SIGKILL), ran.stderr[-3000:]
    return ran.returncode


@pytest.mark.skipif(os.environ.get("STRANDLINE_SOAK") != "1", reason="long: set STRANDLINE_SOAK=1")
@pytest.mark.timeout(1200)  # two JVMs one after the other, on a machine that may be busy
def test_a_schema_that_changes_in_mid_stream_and_a_kill_leave_every_row_once(
    bootstrap: str, topic: str, admin: Admin, registry: str, tmp_path: Path
) -> None:
    admin.create_topic(topic, partitions=1)
    serializers = [AvroSerializer(registry, text) for text in (FIRST, SECOND, THIRD)]
    values = [{"id": 1}, {"id": 1, "note": "b"}, {"id": 1, "note": "c", "more": 3}]
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(60):
            at = number // 20
            value = serializers[at].serialize(topic, {**values[at], "id": number})
            producer.send(topic, b"bad" if number % 20 == 7 else value)
        producer.send(topic, b"\0\0\x0f\xff\xffx")
    transform = "transforms:\n  - {name: mortal, python: 'mortality:die_once', inputs: orders}"
    path = spec_in(
        tmp_path, brokers=bootstrap, topic=topic, registry=registry, transform=transform, stage="mortal"
    )
    (tmp_path / "mortality.py").write_text(MORTALITY)
    # The reader's schema is the second: the sink's schema takes its columns.
    path.write_text(
        path.read_text().replace(
            f"decode: {{format: avro, registry: '{registry}'}}",
            f"decode: {{format: avro, registry: '{registry}', schema-file: second.avsc}}",
        )
    )
    (tmp_path / "second.avsc").write_text(SECOND)

    assert run(path) == -signal.SIGKILL
    before = len(rows_of(bootstrap, f"{topic}-out", 1))
    assert run(path) == 0
    deserializer = AvroDeserializer(registry)
    found = Counter(
        deserializer.deserialize("x", row.value)["id"] for row in rows_of(bootstrap, f"{topic}-out", 1)
    )
    assert before < found.total()
    assert found == Counter(number for number in range(60) if number % 20 != 7)
    letters = [
        dict(row.headers)["dlq.error"].partition(b":")[0] for row in rows_of(bootstrap, f"{topic}.dlq", 1)
    ]
    assert Counter(letters) == Counter({b"not-framed": 3, b"unknown-schema": 1})
