"""Runs Python clients side by side: each writes and reads the same records on the same broker, in its own process.

Every client hands records to the application as its users get them: messages of confluent-kafka, records of aiokafka,
kafka-python and Strandline, one object each. The application reads each value. The columnar client returns tables, and
the application reads the column of values. Reading is measured from the first records on.

`python -m bench.client_peers NAME produce|consume JSON` is one step.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import librdkafka, payloads
from bench.clients import Done, Work
from bench.librdkafka import STEP_WAIT_S_MAX, _Meter

STRANDLINE = "strandline"
COLUMNAR = "strandline-columnar"
CONFLUENT = "confluent-kafka"
AIOKAFKA = "aiokafka"
KAFKA_PYTHON = "kafka-python"
NAMES = (STRANDLINE, COLUMNAR, CONFLUENT, AIOKAFKA, KAFKA_PYTHON)

_POLL_S = 1.0
_RECORDS_AT_ONCE = 2000
_LINGER_MS = 5
_ROWS_AT_ONCE = 50_000


def run(name: str, what: str, work: Work) -> Done:
    question = json.dumps(asdict(work) | {"payloads": str(work.payloads)})
    done = subprocess.run(
        [sys.executable, "-m", "bench.client_peers", name, what, question],
        capture_output=True,
        text=True,
        timeout=STEP_WAIT_S_MAX,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{name} cannot {what}: {done.stderr[-2000:]}")
    return Done(**json.loads(done.stdout.splitlines()[-1]))


class _Reading:
    """Counts records and bytes, and starts the clock with the first records."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._meter: _Meter | None = None
        self._before = 0
        self.count = 0
        self.size = 0

    @property
    def is_done(self) -> bool:
        return self.count >= self._work.record_count

    def saw(self, count: int, size: int) -> None:
        self.count += count
        self.size += size
        if self._meter is None and count:
            self._meter = _Meter()
            self._before = self.count

    def done(self) -> Done:
        assert self._meter is not None, "nothing was read"
        assert self.count == self._work.record_count, f"{self.count} records"
        assert self.size == self._work.record_count * self._work.record_bytes, f"{self.size} bytes"
        return self._meter.read(self.count - self._before)


def _values(work: Work) -> list[bytes]:
    return payloads.read_lines(work.payloads)


def consume_aiokafka(work: Work) -> Done:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def main() -> Done:
        reading = _Reading(work)
        consumer = AIOKafkaConsumer(
            bootstrap_servers=work.bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
        )
        await consumer.start()
        try:
            consumer.assign([TopicPartition(work.topic, index) for index in range(work.partitions)])
            while not reading.is_done:
                found = await consumer.getmany(timeout_ms=int(_POLL_S * 1000))
                for records in found.values():
                    size = 0
                    for record in records:
                        size += len(record.value)
                    reading.saw(len(records), size)
            return reading.done()
        finally:
            await consumer.stop()

    return _loop(main())


def consume_kafka_python(work: Work) -> Done:
    from kafka import KafkaConsumer, TopicPartition

    reading = _Reading(work)
    consumer = KafkaConsumer(
        bootstrap_servers=work.bootstrap,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=_RECORDS_AT_ONCE,
    )
    consumer.assign([TopicPartition(work.topic, index) for index in range(work.partitions)])
    while not reading.is_done:
        for records in consumer.poll(timeout_ms=int(_POLL_S * 1000)).values():
            size = 0
            for record in records:
                size += len(record.value)
            reading.saw(len(records), size)
    done = reading.done()
    consumer.close()
    return done


def consume_confluent(work: Work) -> Done:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    reading = _Reading(work)
    consumer = Consumer(librdkafka.CONSUMER | {"bootstrap.servers": work.bootstrap})
    consumer.assign([TopicPartition(work.topic, index, OFFSET_BEGINNING) for index in range(work.partitions)])
    while not reading.is_done:
        # No more than are left, or the last call would wait for what does not come.
        messages = consumer.consume(min(_RECORDS_AT_ONCE, work.record_count - reading.count), _POLL_S)
        size = 0
        for message in messages:
            size += len(message.value() or b"")
        reading.saw(len(messages), size)
    done = reading.done()
    consumer.close()
    return done


def consume_strandline(work: Work) -> Done:
    from strandline.client import Consumer, TopicPartition

    async def main() -> Done:
        reading = _Reading(work)
        async with Consumer(
            bootstrap_servers=work.bootstrap, auto_offset_reset="earliest", max_poll_records=_RECORDS_AT_ONCE
        ) as consumer:
            consumer.assign([TopicPartition(work.topic, index) for index in range(work.partitions)])
            while not reading.is_done:
                records = await consumer.poll(_POLL_S)
                size = 0
                for record in records:
                    size += len(record.value)
                reading.saw(len(records), size)
            return reading.done()

    return _loop(main())


def consume_columnar(work: Work) -> Done:
    import pyarrow.compute as pc

    from strandline.client import Consumer, TopicPartition
    from strandline.client.columnar.warming import warm_up

    warm_up()

    async def main() -> Done:
        reading = _Reading(work)
        async with Consumer(bootstrap_servers=work.bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(work.topic, index) for index in range(work.partitions)])
            while not reading.is_done:
                table = await consumer.poll_table(_POLL_S)
                if table.num_rows:
                    size = pc.sum(pc.binary_length(table.column("value"))).as_py()
                    reading.saw(table.num_rows, size)
            return reading.done()

    return _loop(main())


def produce_aiokafka(work: Work) -> Done:
    from aiokafka import AIOKafkaProducer

    async def main() -> Done:
        values = _values(work)
        producer = AIOKafkaProducer(
            bootstrap_servers=work.bootstrap, enable_idempotence=True, acks="all", linger_ms=_LINGER_MS
        )
        await producer.start()
        try:
            meter = _Meter()
            for number in range(work.record_count):
                await producer.send(
                    work.topic, values[number % len(values)], partition=number % work.partitions
                )
            await producer.flush()
            return meter.read(work.record_count)
        finally:
            await producer.stop()

    return _loop(main())


def produce_kafka_python(work: Work) -> Done:
    from kafka import KafkaProducer

    values = _values(work)
    producer = KafkaProducer(
        bootstrap_servers=work.bootstrap, enable_idempotence=True, acks="all", linger_ms=_LINGER_MS
    )
    meter = _Meter()
    for number in range(work.record_count):
        producer.send(work.topic, values[number % len(values)], partition=number % work.partitions)
    producer.flush()
    done = meter.read(work.record_count)
    producer.close()
    return done


def produce_strandline(work: Work) -> Done:
    from strandline.client import Producer

    async def main() -> Done:
        values = _values(work)
        async with Producer(bootstrap_servers=work.bootstrap, linger_ms=_LINGER_MS) as producer:
            await producer.partitions_for(work.topic)
            meter = _Meter()
            for number in range(work.record_count):
                await producer.send(
                    work.topic, values[number % len(values)], partition=number % work.partitions
                )
            await producer.flush()
            return meter.read(work.record_count)

    return _loop(main())


def produce_columnar(work: Work) -> Done:
    import pyarrow as pa

    from strandline.client import Producer
    from strandline.client.columnar.warming import warm_up

    warm_up()
    values = _values(work)

    async def main() -> Done:
        column = pa.array([values[number % len(values)] for number in range(_ROWS_AT_ONCE)], pa.binary())
        partitions = pa.array([number % work.partitions for number in range(_ROWS_AT_ONCE)], pa.int32())
        table = pa.table({"value": column, "partition": partitions})
        async with Producer(bootstrap_servers=work.bootstrap, linger_ms=_LINGER_MS) as producer:
            await producer.partitions_for(work.topic)
            meter = _Meter()
            left = work.record_count
            while left:
                rows = min(left, _ROWS_AT_ONCE)
                await producer.send_table(work.topic, table.slice(0, rows), partition="partition")
                left -= rows
            await producer.flush()
            return meter.read(work.record_count)

    return _loop(main())


def _loop(main: Coroutine[Any, Any, Done]) -> Done:
    """Returns a loop of uvloop, on which both asyncio clients are fastest."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


STEPS: dict[tuple[str, str], Callable[[Work], Done]] = {
    (STRANDLINE, "consume"): consume_strandline,
    (STRANDLINE, "produce"): produce_strandline,
    (COLUMNAR, "consume"): consume_columnar,
    (COLUMNAR, "produce"): produce_columnar,
    (CONFLUENT, "consume"): consume_confluent,
    (CONFLUENT, "produce"): librdkafka.produce,
    (AIOKAFKA, "consume"): consume_aiokafka,
    (AIOKAFKA, "produce"): produce_aiokafka,
    (KAFKA_PYTHON, "consume"): consume_kafka_python,
    (KAFKA_PYTHON, "produce"): produce_kafka_python,
}


def main() -> None:
    name, what, question = sys.argv[1:]
    given = json.loads(question)
    work = Work(**(given | {"payloads": Path(given["payloads"])}))
    begun_s = time.perf_counter()
    done = STEPS[name, what](work)
    print(f"{name} {what}: {time.perf_counter() - begun_s:.2f} s in all", file=sys.stderr)
    print(json.dumps(asdict(done)))


if __name__ == "__main__":
    main()
