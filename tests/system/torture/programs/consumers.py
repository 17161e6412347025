"""Small consumers with one mistake each, and the same without it: `consumers.py NAME [mended]`.

They read from STRANDLINE_TOPIC as STRANDLINE_GROUP and print a line for each record that is done.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import confluent_kafka

from strandline.client.errors import KafkaError
from strandline.client.sync import Consumer

BOOTSTRAP = os.environ["STRANDLINE_BOOTSTRAP"]
TOPIC, GROUP = os.environ["STRANDLINE_TOPIC"], os.environ["STRANDLINE_GROUP"]
WORK_S = 0.005


def librdkafka(**settings: Any) -> confluent_kafka.Consumer:
    return confluent_kafka.Consumer(
        {
            "bootstrap.servers": BOOTSTRAP,
            "group.id": GROUP,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": int(os.environ.get("SESSION_MS", "6000")),
            "partition.assignment.strategy": os.environ.get("STRATEGY", "range,roundrobin"),
            **settings,
        }
    )


def done(message: Any) -> None:
    time.sleep(WORK_S)
    json.loads(message.value())
    print(
        json.dumps({"topic": message.topic(), "partition": message.partition(), "offset": message.offset()}),
        flush=True,
    )


def commit(consumer: confluent_kafka.Consumer) -> None:
    try:
        consumer.commit(asynchronous=False)
    except confluent_kafka.KafkaException as error:
        print(f"not committed, the next commit will do: {error}", file=sys.stderr)


def commit_before_processing(mended: bool) -> None:
    consumer = librdkafka()
    consumer.subscribe([TOPIC])
    while True:
        batch = [each for each in consumer.consume(20, 0.2) if each.error() is None]
        if batch and not mended:
            commit(consumer)
        for message in batch:
            try:
                done(message)
            except ValueError:
                print(f"set aside: offset {message.offset()}", file=sys.stderr)
        if batch and mended:
            commit(consumer)


def crashes_on_poison(mended: bool) -> None:
    consumer = librdkafka()
    consumer.subscribe([TOPIC])
    while True:
        message = consumer.poll(0.2)
        if message is None or message.error() is not None:
            continue
        try:
            done(message)
        except ValueError:
            if not mended:
                raise
            print(f"set aside: offset {message.offset()}", file=sys.stderr)
        commit(consumer)


def resets_to_latest(mended: bool) -> None:
    def assigned(consumer: confluent_kafka.Consumer, partitions: list[Any]) -> None:
        for partition, committed in zip(partitions, consumer.committed(partitions, 10), strict=True):
            new = committed.offset < 0
            partition.offset = confluent_kafka.OFFSET_BEGINNING if new else committed.offset
        consumer.assign(partitions)

    consumer = librdkafka(**{"auto.offset.reset": "earliest" if mended else "latest"})
    consumer.subscribe([TOPIC], on_assign=assigned)
    while True:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            done(message)
            commit(consumer)


def gives_up_when_slow(mended: bool) -> None:
    with Consumer(
        bootstrap_servers=BOOTSTRAP,
        group_id=GROUP,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        default_api_timeout_ms=300 if not mended else 30_000,
        request_timeout_ms=300 if not mended else 30_000,
    ) as consumer:
        consumer.subscribe([TOPIC])
        while True:
            records = consumer.poll(0.5)
            for record in records:
                time.sleep(WORK_S)
                print(
                    json.dumps(
                        {"topic": record.topic, "partition": record.partition, "offset": record.offset}
                    ),
                    flush=True,
                )
            if records:
                try:
                    consumer.commit()
                except KafkaError:
                    if not mended:
                        sys.exit(0)


def does_again_what_was_done(mended: bool) -> None:
    """Under exactly-once: the mended one remembers what is done in a place that survives it."""
    memory = os.path.join(tempfile.gettempdir(), f"{TOPIC}.done")
    remembered: set[str] = set()
    if mended and os.path.exists(memory):
        with open(memory) as file:
            remembered = set(file.read().split())
    consumer = librdkafka()
    consumer.subscribe([TOPIC])
    with open(memory, "a") as file:
        while True:
            message = consumer.poll(0.2)
            if message is None or message.error() is not None:
                continue
            place = f"{message.partition()}@{message.offset()}"
            if place not in remembered:
                remembered.add(place)
                file.write(f"{place}\n")
                file.flush()
                done(message)
            commit(consumer)


def drops_its_buffer(mended: bool) -> None:
    """Records wait in a buffer, which is emptied when partitions go. With librdkafka's defaults they are committed by
    then: an offset counts as done as soon as the record was handed out."""
    buffer: deque[Any] = deque()
    consumer = librdkafka(
        **{"enable.auto.commit": True, "auto.commit.interval.ms": 500, "enable.auto.offset.store": not mended}
    )
    consumer.subscribe([TOPIC], on_revoke=lambda *_: buffer.clear())
    while True:
        buffer.extend(message for message in consumer.consume(20, 0.05) if message.error() is None)
        for _ in range(min(5, len(buffer))):
            message = buffer.popleft()
            done(message)
            if mended:
                consumer.store_offsets(message)


def stops_at_the_first_error(mended: bool) -> None:
    """A connection that broke is reported to `error_cb` for information: the library connects again by itself."""
    errors: list[confluent_kafka.KafkaError] = []
    consumer = librdkafka(error_cb=errors.append)
    consumer.subscribe([TOPIC])
    while mended or not errors:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            done(message)
            commit(consumer)


PROGRAMS: dict[str, Callable[[bool], None]] = {
    each.__name__: each
    for each in (
        commit_before_processing,
        crashes_on_poison,
        resets_to_latest,
        gives_up_when_slow,
        does_again_what_was_done,
        drops_its_buffer,
        stops_at_the_first_error,
    )
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]("mended" in sys.argv)
