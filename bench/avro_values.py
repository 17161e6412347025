"""The Avro values of a benchmark and their decoders: `format("strandline-avro")`, and Spark's connector with
from_avro."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from strandline.avro.schema import AvroSource
from strandline.client.sync import Producer
from strandline.spark.avro_columns import AVRO_FORMAT, AVRO_OPTION, DECODED, register

SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "region", "type": ["null", "string"]},
        {"name": "amount", "type": "double"},
        {"name": "quantity", "type": "int"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "is_paid", "type": "boolean"},
        {"name": "note", "type": ["null", "string"]},
    ],
}
SUMS = ("sum(amount)", "sum(length(customer))", "count(note)", "sum(quantity)", "max(at)", "count(1)")
VALUES = 50_000  # different ones; a topic has them again and again


def values() -> list[bytes]:
    import io

    import fastavro

    parsed = fastavro.parse_schema(SCHEMA)
    found = []
    for number in range(VALUES):
        out = io.BytesIO()
        order = {
            "id": number * 1000,
            "customer": f"customer-{number}",
            "region": "north" if number % 3 else None,
            "amount": number / 3,
            "quantity": number % 10,
            "at": 1_600_000_000_000 + number,
            "is_paid": number % 2 == 0,
            "note": None if number % 2 else "a note of some length",
        }
        fastavro.schemaless_writer(out, parsed, order)
        found.append(out.getvalue())
    return found


def fill(bootstrap: str, topic: str, records: int) -> None:
    import pyarrow as pa

    table = pa.table({"value": values()})
    with Producer(bootstrap_servers=bootstrap) as producer:
        for start in range(0, records, VALUES):
            producer.send_table(topic, table.slice(0, min(VALUES, records - start)))
        producer.flush()


def peers(spark: Any, bootstrap: str, topic: str, tuned: dict[str, str]) -> dict[str, Callable[[], Any]]:
    """Returns functions that read the topic's values as columns; `tuned` has options of Spark's connector."""
    from pyspark.sql.avro.functions import from_avro

    register(spark)

    def read(name: str, options: dict[str, str]) -> Any:
        reader = spark.read.format(name).options(**options)
        return reader.option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic).load()

    avro = {AVRO_OPTION: AvroSource(reader=json.dumps(SCHEMA)).to_json()}
    return {
        "kafka, tuned, and from_avro": lambda: (
            read("kafka", tuned)
            .select(from_avro("value", json.dumps(SCHEMA)).alias("found"))
            .select("found.*")
        ),
        "strandline": lambda: read(AVRO_FORMAT, avro).select(f"{DECODED}.*"),
    }
