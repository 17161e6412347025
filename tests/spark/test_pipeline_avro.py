"""Avro in pipelines: decoded by schemas that are given, of one shape or several, as Spark's own from_avro does it."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import fastavro
import pytest
from fastavro.utils import generate_many

from strandline.avro.schema import AvroSource
from strandline.client.sync import Admin, Producer
from strandline.pipeline.runtime.runner import Runner
from strandline.pipeline.spec.reader import load
from strandline.spark.avro_columns import AVRO_FORMAT, AVRO_OPTION, DECODED, ERROR, decode_avro, register
from tests.oracle.fetch import SPARK_AVRO_JARS
from tests.oracle.require import require
from tests.spark.topics import rows_of

FIRST = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "customer", "type": ["null", "string"]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}
SECOND = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "amount", "type": "double", "default": 1.5},
    ],
}
PLAIN = """
pipeline: avro
brokers: {brokers}
checkpoint: checkpoint
sources:
  orders:
    topic: {topic}
    decode:
      format: avro
      schema-file: first.avsc
    rules: [{{name: known, check: customer <> 'nobody'}}]
  names:
    topic: {topic}-names
    as: table
    decode:
      format: avro
      schema: [string, 'null']
transforms:
  - name: named
    sql: |
      SELECT o.id, o.tags, n.value AS name
      FROM orders o LEFT JOIN names n ON o.customer = CAST(n._key AS STRING)
sinks:
  - {{from: named, topic: {topic}-out, partitions: 2}}
"""
EVOLVING = """
pipeline: evolving
brokers: {brokers}
checkpoint: checkpoint
sources:
  orders:
    topic: {topic}
    decode:
      format: avro
      schema-file: second.avsc
      framing: registry
      writer-schemas: {{1: first.avsc, 2: second.avsc}}
sinks:
  - {{from: orders, topic: {topic}-out, partitions: 2}}
"""
# What Avro has, for a comparison with Spark's own decoder.
EVERYTHING = {
    "type": "record",
    "name": "Everything",
    "fields": [
        {"name": "flag", "type": "boolean"},
        {"name": "small", "type": "int"},
        {"name": "large", "type": ["long", "null"]},
        {"name": "single", "type": "float"},
        {"name": "double", "type": "double"},
        {"name": "raw", "type": "bytes"},
        {"name": "text", "type": "string"},
        {"name": "four", "type": {"type": "fixed", "name": "Four", "size": 4}},
        {"name": "side", "type": {"type": "enum", "name": "Side", "symbols": ["LEFT", "RIGHT"]}},
        {"name": "nothing", "type": "null"},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "millis", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "micros", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
        {"name": "uuid", "type": {"type": "string", "logicalType": "uuid"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3},
        },
        {
            "name": "inner",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Inner",
                    "fields": [{"name": "lists", "type": {"type": "array", "items": ["null", "Side"]}}],
                },
            ],
        },
        {"name": "map", "type": {"type": "map", "values": {"type": "array", "items": "Inner"}}},
    ],
}


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def spec_in(directory: Path, text: str, bootstrap: str, topic: str) -> Any:
    (directory / "first.avsc").write_text(json.dumps(FIRST))
    (directory / "second.avsc").write_text(json.dumps(SECOND))
    path = directory / "spec.yaml"
    path.write_text(text.format(brokers=bootstrap, topic=topic))
    return load(path)


def test_avro_is_decoded_and_other_values_are_dead_letters(
    spark: Any, bootstrap: str, topic: str, admin: Admin, tmp_path: Path
) -> None:
    admin.create_topic(topic, partitions=2)
    admin.create_topic(f"{topic}-names", partitions=1)
    orders = [{"id": number, "customer": "ann", "tags": ["a"] * (number % 3)} for number in range(20)]
    nobody = written(FIRST, {"id": 99, "customer": "nobody", "tags": []})
    with Producer(bootstrap_servers=bootstrap) as producer:
        for order in orders:
            producer.send(topic, written(FIRST, order))
        for value in (b"\x02\x05", nobody, None):
            producer.send(topic, value)
        producer.send(f"{topic}-names", b"\x00" + written("string", "Ann"), b"ann")
        producer.send(f"{topic}-names", b"broken", b"bob")
    Runner(spec_in(tmp_path, PLAIN, bootstrap, topic), spark=spark).run()
    found = [json.loads(row.value) for row in rows_of(bootstrap, f"{topic}-out", 2)]
    expected = [{"id": order["id"], "tags": order["tags"], "name": "Ann"} for order in orders]
    assert sorted(found, key=lambda row: row["id"]) == expected
    letters = {row.value: dict(row.headers) for row in rows_of(bootstrap, f"{topic}.dlq", 2)}
    assert letters.keys() == {b"\x02\x05", nobody, None}
    assert letters[nobody]["dlq.stage"] == b"rule known"
    assert letters[b"\x02\x05"]["dlq.stage"] == b"decode"
    said = b"the value is not Avro of the schema: customer: a branch that the union does not have"
    assert letters[b"\x02\x05"]["dlq.error"] == said


def test_the_writers_schema_may_change_in_the_middle_of_a_stream(
    spark: Any, bootstrap: str, topic: str, admin: Admin, tmp_path: Path
) -> None:
    admin.create_topic(topic, partitions=1)
    spec = spec_in(tmp_path, EVOLVING, bootstrap, topic)
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(10):
            old = written(FIRST, {"id": number, "customer": None, "tags": ["old"]})
            producer.send(topic, b"\0\0\0\0\x01" + old)
        producer.flush()
        Runner(spec, spark=spark).run()
        for number in range(10, 20):
            old = written(FIRST, {"id": number, "customer": "left behind", "tags": ["old"]})
            new = written(SECOND, {"id": number + 100, "tags": ["new"], "amount": number / 2})
            producer.send(topic, b"\0\0\0\0\x01" + old)
            producer.send(topic, b"\0\0\0\0\x02" + new)
        producer.send(topic, b"\0\0\0\0\x03" + new)
    Runner(spec, spark=spark).run()
    found = sorted(
        (json.loads(row.value) for row in rows_of(bootstrap, f"{topic}-out", 2)), key=lambda r: r["id"]
    )
    expected = [{"id": number, "tags": ["old"], "amount": 1.5} for number in range(20)]
    expected += [{"id": number + 100, "tags": ["new"], "amount": number / 2} for number in range(10, 20)]
    assert found == expected
    (letter,) = rows_of(bootstrap, f"{topic}.dlq", 1)
    said = b"the value is not Avro of the schema: schema 3 is not among the schemas of this source"
    assert dict(letter.headers)["dlq.error"] == said


@pytest.mark.oracle
def test_columns_are_those_of_sparks_own_decoder(
    spark: Any, bootstrap: str, topic: str, admin: Admin
) -> None:
    require(SPARK_AVRO_JARS)
    from pyspark.sql.avro.functions import from_avro

    schema = json.dumps(EVERYTHING)
    random.seed(7)
    chance = generate_many(fastavro.parse_schema(EVERYTHING), 40)
    admin.create_topic(topic, partitions=2)
    values = [written(EVERYTHING, sensible(row)) for row in chance]
    with Producer(bootstrap_servers=bootstrap) as producer:
        for value in values:
            producer.send(topic, value)
    register(spark)
    records = (
        spark.read.format(AVRO_FORMAT)
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option(AVRO_OPTION, AvroSource(reader=schema).to_json())
        .load()
    )
    ours = records.select(f"{DECODED}.*")
    theirs = records.select(from_avro("value", schema).alias("found")).select("found.*")
    assert [(each.name, each.dataType.simpleString()) for each in ours.schema.fields] == [
        (each.name, each.dataType.simpleString()) for each in theirs.schema.fields
    ]
    rows = plain(ours)
    assert len(rows) == len(values)
    assert rows == plain(theirs)
    assert records.where(f"{ERROR} IS NOT NULL").count() == 0
    column = records.select(decode_avro("value", AvroSource(reader=schema)).alias("found"))
    assert plain(column.select(f"found.{DECODED}.*")) == rows


def plain(rows: Any) -> list[dict[str, Any]]:
    """Java's maps have another order."""
    return sorted((row.asDict(recursive=True) for row in rows.collect()), key=lambda row: row["text"])


def sensible(row: dict[str, Any]) -> dict[str, Any]:
    """Returns the row with values of logical types that calendars and Spark's decimals can have; fastavro makes larger
    ones."""
    return {
        **row,
        "day": row["small"] % 100_000,
        "millis": row["small"] * 1000,
        "micros": row["small"] * 1000 + 7,
        "local": row["small"] * 1000,
        "uuid": "00000000-0000-0000-0000-000000000000",
        "price": (row["small"] * 12345).to_bytes(8, "big", signed=True),
    }
