"""Members in Python: `python -m tests.compat.members.python_members`, controlled by JSON lines on standard input.

    {"operation": "start", "member", "client", "journal", "settings", "topic"}
    {"operation": "stop", "member"}      the consumer will be closed, as an application does that ends
    {"operation": "ping"}

Each member polls, notes what it got, commits it, and goes on. A test that needs a crash kills the whole program.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tests.compat.members.journal import JournalWriter

# A batch takes as long as this, so that membership changes while there is work.
PROCESSING_S = 0.01
BATCH = 20
COMMIT_PATIENCE_S = 15.0
# kafka-python 3.0 forgets the join that a poll was in when its time was over: the answers come and nobody takes them.
# So a poll must outlast a rebalance.
KAFKA_PYTHON_POLL_MS = 3000

# What a coordinator tells a member whose commit comes when the group has gone on to its next generation: the member
# is not to blame, and its application reads those records again.
_REBALANCED = (
    "ILLEGAL_GENERATION",
    "REBALANCE_IN_PROGRESS",
    "IllegalGeneration",
    "RebalanceInProgress",
    "CommitFailed",
)


def confluent(settings: dict[str, Any], topic: str, journal: JournalWriter, stop: threading.Event) -> None:
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    consumer = Consumer({"auto.offset.reset": "earliest", "enable.auto.commit": False, **settings})
    incremental = settings.get("group.protocol") == "consumer" or "cooperative" in settings.get(
        "partition.assignment.strategy", ""
    )

    def assigned(_: Any, partitions: list[TopicPartition]) -> None:
        journal.assigned(p.partition for p in partitions)
        (consumer.incremental_assign if incremental else consumer.assign)(partitions)

    def revoked(_: Any, partitions: list[TopicPartition]) -> None:
        journal.revoked(p.partition for p in partitions)
        if incremental:
            consumer.incremental_unassign(partitions)
        else:
            consumer.unassign()

    consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
    while not stop.is_set():
        batch = []
        first = consumer.poll(0.05)
        while first is not None and len(batch) < BATCH:
            if first.error():
                journal.error(first.error())
            else:
                batch.append(first)
            first = consumer.poll(0) if len(batch) < BATCH else None
        held = {p.partition for p in consumer.assignment()}
        ranges = _ranges([(m.partition(), m.offset()) for m in batch if m.partition() in held])
        _process(ranges, journal)

        def commit(offsets: dict[int, int]) -> None:
            consumer.commit(
                offsets=[TopicPartition(topic, p, o) for p, o in offsets.items()], asynchronous=False
            )

        _commit(commit, ranges, journal, stop, KafkaException)
    consumer.close()


def kafka_python(settings: dict[str, Any], topic: str, journal: JournalWriter, stop: threading.Event) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
        from kafka.errors import KafkaError

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_assigned(self, assigned: Any) -> None:
            journal.assigned(p.partition for p in assigned)

        def on_partitions_revoked(self, revoked: Any) -> None:
            journal.revoked(p.partition for p in revoked)

    given = {name.replace(".", "_"): value for name, value in settings.items()}
    given["partition_assignment_strategy"] = [_kafka_python_assignor(given.pop("assignor", "range"))]
    consumer = KafkaConsumer(
        auto_offset_reset="earliest", enable_auto_commit=False, max_poll_records=BATCH, **given
    )
    consumer.subscribe([topic], listener=Listener())
    while not stop.is_set():
        found = consumer.poll(timeout_ms=KAFKA_PYTHON_POLL_MS)
        ranges = _ranges([(p.partition, r.offset) for p, records in found.items() for r in records])
        _process(ranges, journal)

        def commit(offsets: dict[int, int]) -> None:
            consumer.commit(
                {TopicPartition(topic, p): OffsetAndMetadata(o, "", -1) for p, o in offsets.items()}
            )

        _commit(commit, ranges, journal, stop, KafkaError)
    consumer.close()


def _kafka_python_assignor(name: str) -> Any:
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

    return {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }[name]


def aiokafka(settings: dict[str, Any], topic: str, journal: JournalWriter, stop: threading.Event) -> None:
    asyncio.run(_aiokafka(settings, topic, journal, stop))


async def _aiokafka(
    settings: dict[str, Any], topic: str, journal: JournalWriter, stop: threading.Event
) -> None:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.errors import KafkaError

    busy = asyncio.Lock()

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_revoked(self, revoked: Any) -> None:
            async with busy:  # its rebalances run beside the application: what is in hand is finished first
                journal.revoked(p.partition for p in revoked)

        async def on_partitions_assigned(self, assigned: Any) -> None:
            journal.assigned(p.partition for p in assigned)

    given = {name.replace(".", "_"): value for name, value in settings.items()}
    assignors = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}
    given["partition_assignment_strategy"] = [assignors[given.pop("assignor", "range")]]
    consumer = AIOKafkaConsumer(auto_offset_reset="earliest", enable_auto_commit=False, **given)
    consumer.subscribe([topic], listener=Listener())
    await consumer.start()
    while not stop.is_set():
        # Not while it is busy: in a rebalance this waits for the listener, whatever its time limit.
        found = await consumer.getmany(timeout_ms=50, max_records=BATCH)
        ranges = _ranges([(p.partition, r.offset) for p, records in found.items() for r in records])
        async with busy:
            for partition, (first, last) in ranges.items():
                journal.processed(partition, first, last)
            if ranges:
                await asyncio.sleep(PROCESSING_S)
                try:
                    await consumer.commit(
                        {TopicPartition(topic, p): last + 1 for p, (_, last) in ranges.items()}
                    )
                    for partition, (_, last) in ranges.items():
                        journal.committed(partition, last + 1)
                except KafkaError as error:
                    _note_failed_commit(error, ranges, journal)
        await asyncio.sleep(0)
    await consumer.stop()


def _ranges(places: list[tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """First and last offset by partition; within a partition they come in order and without gaps."""
    found: dict[int, tuple[int, int]] = {}
    for partition, offset in places:
        first, last = found.get(partition, (offset, offset - 1))
        assert offset == last + 1, f"partition {partition}: {offset} after {last}"
        found[partition] = (first, offset)
    return found


def _process(ranges: dict[int, tuple[int, int]], journal: JournalWriter) -> None:
    for partition, (first, last) in ranges.items():
        journal.processed(partition, first, last)
    if ranges:
        time.sleep(PROCESSING_S)


def _commit(
    commit: Callable[[dict[int, int]], None],
    ranges: dict[int, tuple[int, int]],
    journal: JournalWriter,
    stop: threading.Event,
    error_class: type[Exception],
) -> None:
    """Tries again what a client may try again; a commit that is refused for good is noted."""
    if not ranges:
        return
    offsets = {partition: last + 1 for partition, (_, last) in ranges.items()}
    deadline = time.monotonic() + COMMIT_PATIENCE_S
    while True:
        try:
            commit(offsets)
            break
        except error_class as error:
            text = repr(error)
            # The new member epoch is on its way with the next heartbeat (KIP-848).
            if "STALE_MEMBER_EPOCH" not in text or time.monotonic() > deadline:
                _note_failed_commit(error, ranges, journal)
                return
            time.sleep(0.02)
    for partition, offset in offsets.items():
        journal.committed(partition, offset)


def _note_failed_commit(error: Exception, ranges: dict[int, tuple[int, int]], journal: JournalWriter) -> None:
    text = repr(error)
    if not any(name in text for name in _REBALANCED):
        journal.error(text)
        return
    for partition, (first, last) in ranges.items():
        journal.refused(partition, first, last)


CLIENTS = {"confluent": confluent, "kafka-python": kafka_python, "aiokafka": aiokafka}


def _run(client: str, settings: dict[str, Any], topic: str, path: str, stop: threading.Event) -> None:
    journal = JournalWriter(path)
    try:
        CLIENTS[client](settings, topic, journal, stop)
        journal.closed()
    except BaseException as error:
        journal.error(f"ended: {error!r}")
        raise


def main() -> None:
    members: dict[str, tuple[threading.Thread, threading.Event]] = {}
    for line in sys.stdin:
        question = json.loads(line)
        if question["operation"] == "start":
            stop = threading.Event()
            arguments = (
                question["client"],
                question["settings"],
                question["topic"],
                question["journal"],
                stop,
            )
            thread = threading.Thread(target=_run, args=arguments, daemon=True)
            members[question["member"]] = (thread, stop)
            thread.start()
        elif question["operation"] == "stop":
            members[question["member"]][1].set()
        print(json.dumps({"result": None}), flush=True)
    for _, stop in members.values():
        stop.set()
    for thread, _ in members.values():
        with suppress(RuntimeError):
            thread.join(10)


if __name__ == "__main__":
    main()
