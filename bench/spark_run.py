"""Measures Strandline's Spark source and sinks beside Spark's own connector, on one Strandline broker, in one run.

    python -m bench.spark_run [--rounds N] [--scale F] [--only TEXT] [--dry]

Writes docs/benchmarks/spark.json and spark.md; `--dry` only prints the page, as does `--only`, which runs the scenarios
that have TEXT in their names (read-100-none … read-1000-zstd, write-100, stream-100, parquet-100, avro-53).
Formats alternate within each round and are warmed once before. A ratio is of figures of the same round, which had the
same noise. CPU is that of Spark's driver, JVM and Python processes together, without the broker's.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from bench import machine, payloads, spark_page
from bench.peers import StrandlinePeer
from bench.process_tree import TreeClock
from bench.results import DIRECTORY, Results
from strandline.client.sync import Admin, Producer
from strandline.spark import exactly_once, write_atomically
from tests.oracle.fetch import JAVA, SPARK_AVRO_JARS, SPARK_KAFKA_JARS
from tests.oracle.require import require
from tests.spark.sessions import session

# Large fetches: what a page of advice on Spark's connector says to raise.
TUNED = {
    "kafka.max.partition.fetch.bytes": str(16 * 1024 * 1024),
    "kafka.fetch.max.bytes": str(128 * 1024 * 1024),
    "kafka.max.poll.records": "50000",
    "kafka.receive.buffer.bytes": str(1024 * 1024),
}
READS = {"kafka": ("kafka", {}), "kafka, tuned": ("kafka", TUNED), "strandline": ("strandline", {})}
RECORDS = {100: 1_500_000, 1000: 300_000}
PARTITIONS = 4
SINK_RECORDS = 400_000
STREAM_BATCHES = 8
PARQUET_RECORDS = 800_000
AVRO_RECORDS = 1_000_000
QUERY_SECONDS_MAX = 600
# For five minutes after a batch query Spark's connector keeps its consumers and their fetched records, which no other
# query can use: 185 MB for each tuned query of `read-1000-zstd`. A few of them fill the heap of the session that all
# share, and the next query is slowed down by the garbage collector. Micro-batches are close enough together that they
# find the same cached records as without this setting.
FORGET_AFTER_SECONDS = 5
CONNECTOR_FORGETS = {
    f"spark.kafka.consumer.{cache}.{name}": f"{seconds}s"
    for cache in ("cache", "fetchedData.cache")
    for name, seconds in (("timeout", FORGET_AFTER_SECONDS), ("evictorThreadRunInterval", 1))
}


class Run:
    def __init__(
        self, spark: Any, peer: StrandlinePeer, scratch: Path, results: Results, scale: float, only: str
    ) -> None:
        self._spark = spark
        self._bootstrap = peer.bootstrap
        self._not_spark = frozenset({peer.pid})
        self._scratch = scratch
        self._results = results
        self._scale = scale
        self._only = only
        self._topics = 0
        self._checkpoints = 0

    def everything(self, rounds: int) -> None:
        scenarios: dict[str, Callable[[int], None]] = {
            f"read-{size}-{codec}": partial(self._read, size, codec)
            for size in RECORDS
            for codec in ("none", "zstd")
        }
        scenarios |= {
            "write-100": self._write,
            "stream-100": self._stream,
            "parquet-100": self._parquet,
            "avro-53": self._avro,
        }
        for name, measure in scenarios.items():
            if self._only in name:
                measure(rounds)

    def _alternate(
        self, scenario: str, doc: str, peers: dict[str, Callable[[], dict[str, float]]], rounds: int
    ) -> None:
        self._results.scenarios[scenario] = {"doc": doc, "peers": list(peers)}
        for measure in peers.values():
            measure()
        for number in range(rounds):
            for peer, measure in peers.items():
                self._spark._jvm.System.gc()  # what the one before has left is not collected in this one's time
                self._results.add(scenario, peer, number, measure())
            print(scenario, number, file=sys.stderr, flush=True)

    def _new_topic(self, partitions: int = PARTITIONS) -> str:
        self._topics += 1
        topic = f"bench-{self._topics}"
        with Admin(bootstrap_servers=self._bootstrap) as admin:
            admin.create_topic(topic, partitions=partitions)
        return topic

    # Reading

    def _read(self, size: int, codec: str, rounds: int) -> None:
        count = int(RECORDS[size] * self._scale)
        topic = self._filled(size, codec, count)

        def measured(source: str, options: dict[str, str]) -> Callable[[], dict[str, float]]:
            def once() -> dict[str, float]:
                clock, began = TreeClock(without=self._not_spark), time.monotonic()
                frame = self._spark.read.format(source).option("kafka.bootstrap.servers", self._bootstrap)
                found = frame.options(**options).option("subscribe", topic).load()
                total = found.selectExpr("sum(length(value)) as bytes", "count(1) as rows").collect()[0]
                seconds = time.monotonic() - began
                assert total.rows == count, f"{total.rows} rows instead of {count}"
                return {"mb_per_s": total.bytes / seconds / 1e6, "cpu_s": clock.seconds()}

            return once

        peers = {name: measured(source, options) for name, (source, options) in READS.items()}
        doc = f"batch read, {count:,} records of {size} B, {codec}: MB/s of values"
        self._alternate(f"read-{size}-{codec}", doc, peers, rounds)

    def _filled(self, size: int, codec: str, count: int) -> str:
        import pyarrow as pa

        topic = self._new_topic()
        values = (
            payloads.compressible(size) if codec != "none" and size >= 400 else payloads.incompressible(size)
        )
        with Producer(bootstrap_servers=self._bootstrap, compression_type=codec) as producer:
            for start in range(0, count, len(values)):
                part = values[: min(len(values), count - start)]
                sent = producer.send_table(topic, pa.table({"value": part}))
                assert sent.rows == len(part)
            producer.flush()
        return topic

    # Writing

    def _write(self, rounds: int) -> None:
        count = int(SINK_RECORDS * self._scale)
        rows = self._spark.range(count).selectExpr(
            "cast(id as string) as key", "cast(rpad(cast(id as string), 100, 'x') as binary) as value"
        )
        rows = rows.cache()
        assert rows.count() == count

        def timed(write: Callable[[str], object]) -> Callable[[], dict[str, float]]:
            def once() -> dict[str, float]:
                topic = self._new_topic()
                began = time.monotonic()
                write(topic)
                return {"krecords_per_s": count / (time.monotonic() - began) / 1000}

            return once

        def at_least_once(source: str) -> Callable[[str], object]:
            def write(topic: str) -> None:
                writer = rows.write.format(source).option("kafka.bootstrap.servers", self._bootstrap)
                writer.option("topic", topic).mode("append").save()

            return write

        peers = {
            "kafka": timed(at_least_once("kafka")),
            "strandline": timed(at_least_once("strandline")),
            "strandline, one transaction": timed(
                lambda topic: write_atomically(rows, self._bootstrap, name="bench", topic=topic)
            ),
        }
        doc = f"batch write, {count:,} keyed records of 100 B from memory: thousand records/s"
        self._alternate("write-100", doc, peers, rounds)
        rows.unpersist()

    # Streaming

    def _batch_ms(self, writer: Any) -> float:
        """Runs a query to the end of its topic, and returns the median time of its micro-batches except the first."""
        self._checkpoints += 1
        query = (
            writer.option("checkpointLocation", str(self._scratch / f"checkpoint-{self._checkpoints}"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(QUERY_SECONDS_MAX), "the query did not end"
        times = [json.loads(each.json)["durationMs"]["triggerExecution"] for each in query.recentProgress]
        return median(times[1:])

    def _opened(self, source: str, topic: str, offsets_max: int) -> Any:
        stream = self._spark.readStream.format(source).option("kafka.bootstrap.servers", self._bootstrap)
        stream = stream.option("subscribe", topic).option("startingOffsets", "earliest")
        return stream.option("maxOffsetsPerTrigger", str(offsets_max)).load().select("key", "value")

    def _stream(self, rounds: int) -> None:
        """Measures a query from topic to topic, and one from a Python source with hardly any rows into no sink."""
        from bench.spark_empty_source import EmptySource

        self._spark.dataSource.register(EmptySource)
        count = int(SINK_RECORDS * self._scale)
        source_topic = self._filled(100, "none", count)
        limit = -(-count // STREAM_BATCHES)

        def copied(source: str) -> Callable[[], dict[str, float]]:
            def once() -> dict[str, float]:
                writer = self._opened(source, source_topic, limit).writeStream.format(source)
                writer = writer.option("topic", self._new_topic())
                writer = writer.option("kafka.bootstrap.servers", self._bootstrap)
                return {"batch_ms": self._batch_ms(writer)}

            return once

        def copied_exactly_once(*columns: str) -> Callable[[], dict[str, float]]:
            def once() -> dict[str, float]:
                frame = self._opened("strandline", source_topic, limit).selectExpr(*columns)
                return {
                    "batch_ms": self._batch_ms(exactly_once(frame, self._bootstrap, topic=self._new_topic()))
                }

            return once

        def dropped() -> dict[str, float]:
            empty = self._spark.readStream.format("bench_empty").option("batches", STREAM_BATCHES).load()
            return {"batch_ms": self._batch_ms(empty.writeStream.format("noop"))}

        peers = {
            "kafka": copied("kafka"),
            "strandline": copied("strandline"),
            "strandline, exactly once": copied_exactly_once("key", "value"),
            "strandline, exactly once, new keys": copied_exactly_once("substr(value, 1, 8) as key", "value"),
            "an empty Python source, no sink": dropped,
        }
        doc = f"topic to topic, micro-batches of {limit:,} records of 100 B: median ms of a micro-batch"
        self._alternate("stream-100", doc, peers, rounds)

    def _parquet(self, rounds: int) -> None:
        count = int(PARQUET_RECORDS * self._scale)
        topic = self._filled(100, "none", count)
        limit = -(-count // STREAM_BATCHES)

        def stored(source: str) -> Callable[[], dict[str, float]]:
            def once() -> dict[str, float]:
                target = self._scratch / f"parquet-{self._checkpoints}"
                began = time.monotonic()
                writer = self._opened(source, topic, limit).writeStream.format("parquet")
                batch_ms = self._batch_ms(writer.option("path", str(target)))
                seconds = time.monotonic() - began
                assert self._spark.read.parquet(str(target)).count() == count
                return {"krecords_per_s": count / seconds / 1000, "batch_ms": batch_ms}

            return once

        doc = f"stream into Parquet, {count:,} records of 100 B in {STREAM_BATCHES} micro-batches: thousand records/s"
        self._alternate("parquet-100", doc, {name: stored(name) for name in ("kafka", "strandline")}, rounds)

    # Avro

    def _avro(self, rounds: int) -> None:
        from bench import avro_values

        count = int(AVRO_RECORDS * self._scale)
        topic = self._new_topic()
        avro_values.fill(self._bootstrap, topic, count)
        sums: list[Any] = []

        def summed(rows: Callable[[], Any]) -> Callable[[], dict[str, float]]:
            def once() -> dict[str, float]:
                clock, began = TreeClock(without=self._not_spark), time.monotonic()
                sums.append(rows().selectExpr(*avro_values.SUMS).collect())
                seconds = time.monotonic() - began
                assert sums[-1] == sums[0], f"the peers do not agree: {sums[0]}, {sums[-1]}"
                return {"krecords_per_s": count / seconds / 1000, "cpu_s": clock.seconds()}

            return once

        both = avro_values.peers(self._spark, self._bootstrap, topic, TUNED)
        doc = f"topic of Avro decoded, {count:,} records of 53 B and 8 fields: thousand records/s"
        self._alternate("avro-53", doc, {name: summed(rows) for name, rows in both.items()}, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", default="", metavar="TEXT", help="scenarios with this in their names")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="strandline-bench-") as directory:
        scratch = Path(directory)
        peer = StrandlinePeer(scratch / "broker")
        run = {
            "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
            "rounds": options.rounds,
            "scale": options.scale,
            "revision": machine.revision(),
            "machine": machine.facts(scratch, require(JAVA)),
            "load_average": [os.getloadavg()[0]],
        }
        results = Results(run=run)
        peer.start()
        try:
            more = {"spark_driver_memory": "2g", "spark_driver_extraJavaOptions": "-XX:+UseParallelGC"}
            jars = [require(SPARK_KAFKA_JARS), require(SPARK_AVRO_JARS)]
            spark = session(scratch / "spark", jars, is_python_quick=True, **more, **CONNECTOR_FORGETS)
            Run(spark, peer, scratch, results, options.scale, options.only).everything(options.rounds)
            spark.stop()
        finally:
            peer.stop()
    results.run["load_average"].append(os.getloadavg()[0])
    page = spark_page.page(results)
    if options.dry or options.only:
        print(page)
        return
    (DIRECTORY / "spark.json").write_text(json.dumps(asdict(results), indent=1) + "\n")
    (DIRECTORY / "spark.md").write_text(page)


if __name__ == "__main__":
    main()
