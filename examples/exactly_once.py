"""Exactly once, though the driver dies in the middle of a batch. `python examples/exactly_once.py`

A query copies 60,000 payments from one topic into another. When it has written a part of a batch and not committed it,
its driver and the JVM are killed with SIGKILL. The query is started again with the same checkpoint, and runs to the
end. Then the copy is counted twice: as a reader of committed records sees it, and as one that reads everything.

Starts a broker of its own. Needs `pip install '.[spark]'`, and takes about a minute.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from strandline.client.sync import Admin, Consumer, Producer, TopicPartition
from strandline.testing import running_broker

SOURCE, TARGET, PARTITIONS, COUNT, PER_BATCH = "payments", "payments-copy", 3, 60_000, 6_000
PARTS = [TopicPartition(TARGET, number) for number in range(PARTITIONS)]
COMMITTED, EVERYTHING = "read_committed", "read_uncommitted"
SECONDS_MAX = 300


def query(bootstrap: str, checkpoint: str) -> None:
    """Runs the query. Only this part would be in a job of your own."""
    from strandline.spark import exactly_once, session

    spark = session("payments", settings={"spark.log.level": "ERROR"})
    payments = (
        spark.readStream.format("strandline")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", SOURCE)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", str(PER_BATCH))
        .load()
        .select("value")
    )
    sink = exactly_once(payments, bootstrap, topic=TARGET, restart=True)
    sink.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    spark.stop()


def start_query(bootstrap: str, checkpoint: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, "query", bootstrap, str(checkpoint)]
    return subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)


def kill_in_a_batch(driver: subprocess.Popen[bytes], bootstrap: str) -> int:
    """Kills the driver and its JVM when a part of a batch is written and not committed; the number of such rows."""
    deadline = time.monotonic() + SECONDS_MAX
    with (
        Consumer(bootstrap_servers=bootstrap, isolation_level=EVERYTHING) as everything,
        Consumer(bootstrap_servers=bootstrap, isolation_level=COMMITTED) as committed,
    ):
        while time.monotonic() < deadline and driver.poll() is None:
            stable = sum(committed.end_offsets(PARTS).values())
            open_rows = sum(everything.end_offsets(PARTS).values()) - stable
            # A whole batch may be committed already, without its markers.
            if stable > 0 and PER_BATCH // 10 < open_rows < PER_BATCH * 9 // 10:
                os.killpg(driver.pid, signal.SIGKILL)
                driver.wait()
                return open_rows
    if driver.poll() is None:
        os.killpg(driver.pid, signal.SIGKILL)
    raise SystemExit("the query could not be killed in the middle of a batch: try again")


def values(bootstrap: str, isolation_level: str) -> list[bytes]:
    with Consumer(
        bootstrap_servers=bootstrap, isolation_level=isolation_level, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign(PARTS)
        ends = consumer.end_offsets(PARTS)
        found: list[bytes] = []
        while any(consumer.position(part) < ends[part] for part in PARTS):
            found.extend(record.value or b"" for record in consumer.poll(1.0))
        return found


def main() -> None:
    with running_broker() as broker, tempfile.TemporaryDirectory() as directory:
        bootstrap, checkpoint = broker.bootstrap, Path(directory) / "checkpoint"
        with Admin(bootstrap_servers=bootstrap) as admin, Producer(bootstrap_servers=bootstrap) as producer:
            for topic in (SOURCE, TARGET):
                admin.create_topic(topic, partitions=PARTITIONS)
            for number in range(COUNT):
                producer.send(SOURCE, b"payment %d" % number)
        print(f"{COUNT:,} payments are in the topic {SOURCE}", flush=True)

        open_rows = kill_in_a_batch(start_query(bootstrap, checkpoint), bootstrap)
        print(f"the driver was killed with {open_rows:,} rows written and not committed", flush=True)
        if status := start_query(bootstrap, checkpoint).wait(SECONDS_MAX):
            raise SystemExit(f"the query ended with status {status}")
        print("the query was started again, and ran to the end", flush=True)

        committed, everything = values(bootstrap, COMMITTED), values(bootstrap, EVERYTHING)
        print(
            f"readers of committed records see {len(committed):,} payments, {len(set(committed)):,} of them different"
        )
        print(
            f"readers of everything see {len(everything):,} records: {len(everything) - len(committed):,} were aborted"
        )
        expected = {b"payment %d" % number for number in range(COUNT)}
        if len(committed) != COUNT or set(committed) != expected:
            raise SystemExit("payments are missing or there twice")


if __name__ == "__main__":
    if sys.argv[1:2] == ["query"]:
        query(*sys.argv[2:])
    else:
        main()
