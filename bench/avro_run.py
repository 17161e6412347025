"""Topics of Avro values as columns: `format("strandline-avro")` beside Spark's own connector with from_avro.

    python -m bench.avro_run [--rounds N] [--records N]

Both read one topic of one Strandline broker and add up some of the columns; they alternate within each round and are
warmed once before. The last line is the median of the ratios, each of figures of the same round.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from bench.peers import StrandlinePeer
from bench.spark_run import PARTITIONS, TUNED
from strandline.client.avro.schema import AvroSource
from strandline.client.sync import Admin, Producer
from strandline.spark.avro import AVRO_FORMAT, AVRO_OPTION, DECODED, register
from tests.oracle.fetch import JAVA, SPARK_AVRO_JARS, SPARK_KAFKA_JARS
from tests.oracle.require import require
from tests.spark.sessions import session

TOPIC = "bench-avro"
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


def fill(bootstrap: str, records: int) -> None:
    import pyarrow as pa

    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(TOPIC, partitions=PARTITIONS)
    table = pa.table({"value": values()})
    with Producer(bootstrap_servers=bootstrap) as producer:
        for start in range(0, records, VALUES):
            producer.send_table(TOPIC, table.slice(0, min(VALUES, records - start)))
        producer.flush()


def peers(spark: Any, bootstrap: str) -> dict[str, Any]:
    from pyspark.sql.avro.functions import from_avro

    register(spark)

    def topic(name: str, options: dict[str, str]) -> Any:
        reader = spark.read.format(name).options(**options)
        return reader.option("kafka.bootstrap.servers", bootstrap).option("subscribe", TOPIC).load()

    avro = {AVRO_OPTION: AvroSource(reader=json.dumps(SCHEMA)).to_json()}
    return {
        "kafka and from_avro": lambda: (
            topic("kafka", TUNED)
            .select(from_avro("value", json.dumps(SCHEMA)).alias("found"))
            .select("found.*")
        ),
        "strandline": lambda: topic(AVRO_FORMAT, avro).select(f"{DECODED}.*"),
    }


def measure(rounds: int, records: int) -> list[float]:
    """The ratio of each round: how many times as fast Strandline is."""
    ratios = []
    jars = [require(SPARK_KAFKA_JARS), require(SPARK_AVRO_JARS)]
    with tempfile.TemporaryDirectory() as scratch:
        peer = StrandlinePeer(Path(scratch) / "broker")
        peer.start()
        try:
            fill(peer.bootstrap, records)
            more = {"spark_driver_memory": "2g", "spark_driver_extraJavaOptions": "-XX:+UseParallelGC"}
            spark = session(Path(scratch) / "spark", jars, **more)
            both = peers(spark, peer.bootstrap)
            for number in range(-1, rounds):  # the first is to warm up
                seconds, sums = {}, []
                for name, rows in both.items():
                    began = time.monotonic()
                    sums.append(rows().selectExpr(*SUMS).collect())
                    seconds[name] = time.monotonic() - began
                assert sums[0] == sums[1], f"the peers do not agree: {sums}"
                if number >= 0:
                    ratios.append(seconds["kafka and from_avro"] / seconds["strandline"])
                    told = ", ".join(f"{name} {records / took:,.0f}/s" for name, took in seconds.items())
                    print(f"round {number}: {told}, ratio {ratios[-1]:.2f}", flush=True)
            spark.stop()
        finally:
            peer.stop()
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=1_000_000)
    options = parser.parse_args()
    require(JAVA)
    ratios = measure(options.rounds, options.records)
    print(f"Avro decode, {options.records:,} records: {median(ratios):.2f} times from_avro")


if __name__ == "__main__":
    main()
