"""Writes, reads and compares records in tests, and waits for a cluster: coroutines over the client.

The brokers of `strandline.testing` have them as methods (`testing.reachable`): as coroutines if the broker is embedded,
otherwise as methods that block.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from strandline.base.ids import TopicPartition
from strandline.client.admin.admin import Admin
from strandline.client.arguments import ConfigValue
from strandline.client.consumer.consumer import Consumer
from strandline.client.consumer.record_decoder import ConsumerRecord
from strandline.client.errors import KafkaError, UnknownTopicError
from strandline.client.net.metadata import TopicInfo
from strandline.client.producer.batch import RecordMetadata
from strandline.client.producer.producer import Producer
from strandline.testing.expectations import RecordComparison

_LOOK_AGAIN_S: Final = 0.02
_NAMED_MAX: Final = 20
# The response to a request is awaited for at least this time, even if the test allows less.
_RESPONSE_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecord:
    """A record to write that has more than a key and a value."""

    value: Any = None
    key: Any = None
    headers: tuple[tuple[str, bytes], ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


def as_bytes(value: Any) -> bytes | None:
    """Returns bytes and None as they are, text as UTF-8, dicts and lists as JSON. Raises TypeError for anything
    else."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict | list):
        return json.dumps(value).encode()
    raise TypeError(
        f"{value!r} cannot be written: a value is bytes, text, None, or a dict or a list, which becomes JSON"
    )


def _new_record(record: Any) -> NewRecord:
    if isinstance(record, NewRecord):
        return record
    if isinstance(record, tuple):
        if len(record) != 2:
            raise TypeError(f"{record!r} cannot be written: a tuple is (key, value); NewRecord has the rest")
        return NewRecord(key=record[0], value=record[1])
    return NewRecord(value=record)


async def produce(settings: Mapping[str, Any], topic: str, records: Iterable[Any]) -> list[RecordMetadata]:
    """Writes records with acks=all and returns their partitions and offsets; raises the first error."""
    if isinstance(records, str | bytes | dict | tuple | NewRecord):
        raise TypeError(f"records is a list of records, and not {records!r} alone: put it into [ ]")
    rows = [_new_record(each) for each in records]
    encoded = [(as_bytes(row.value), as_bytes(row.key)) for row in rows]
    async with Producer({**settings, "linger.ms": 0}) as producer:
        promises = [
            await producer.send(
                topic,
                value,
                key=key,
                partition=row.partition,
                timestamp_ms=row.timestamp_ms,
                headers=list(row.headers),
            )
            for row, (value, key) in zip(rows, encoded, strict=True)
        ]
        return [await promise for promise in promises]


async def consume(
    settings: Mapping[str, Any], topic: str, count: int | None = None, *, within: float = 10.0
) -> list[ConsumerRecord]:
    """Returns the committed records of a topic from its beginning: all that are there, or the first `count`.

    It waits for `count` records for `within` seconds; TimeoutError says which ones were there. It neither joins nor
    changes a group.
    """
    async with _Reader(settings, topic, within) as reader:
        if not reader.topic_exists:
            raise TimeoutError(f"topic {topic} does not exist after {within:g} s")
        if count is None:
            await reader.read_to_end()
            return reader.records
        while len(reader.records) < count:
            if not await reader.read_more() and len(reader.records) < count:
                there = RecordComparison(topic, [], reader.records, False).rows_there()
                raise TimeoutError(
                    f"topic {topic} has {len(reader.records)} records after {within:g} s, and not {count}:\n{there}"
                )
        return reader.records[:count]


async def expect(
    settings: Mapping[str, Any],
    topic: str,
    expected: Iterable[Any],
    *,
    within: float = 5.0,
    quiet: float = 0.0,
    in_order: bool | None = None,
) -> list[ConsumerRecord]:
    """Waits until a topic holds exactly these committed records, and returns them; AssertionError shows the difference.

    Each is a value, a pair of key and value, or a function of the record. A dict or a list is compared with the value
    as JSON. Records of one partition are compared in their order, those of several in any order, unless `in_order` says
    otherwise: with True they are compared by partition and offset. It fails at once when a record comes that is not
    expected. For `quiet` seconds after the last expected one no further record may come.
    """
    if isinstance(expected, str | bytes | dict | tuple) or callable(expected):
        raise TypeError(f"expected is a list of records, and not {expected!r} alone: put it into [ ]")
    rows = list(expected)
    async with _Reader(settings, topic, within) as reader:
        ordered = in_order if in_order is not None else reader.partition_count == 1
        while True:
            seen = RecordComparison(topic, rows, reader.records, ordered)
            if seen.unexpected or (not seen.missing and reader.topic_exists):
                break
            if not await reader.read_more():
                seen = RecordComparison(topic, rows, reader.records, ordered)
                break
        if reader.topic_exists and not seen.missing and not seen.unexpected:
            await reader.read_to_end()
            await reader.stay(quiet)
            seen = RecordComparison(topic, rows, reader.records, ordered)
            if not seen.unexpected:
                return seen.in_expected_order()
        raise AssertionError(seen.report(within, exists=reader.topic_exists))


class _Reader:
    """Reads the committed records of a topic from its beginning, until a deadline."""

    def __init__(self, settings: Mapping[str, Any], topic: str, within: float) -> None:
        self._topic = topic
        self._within = within
        self._consumer = Consumer(
            {
                **settings,
                "isolation.level": "read_committed",
                "allow.auto.create.topics": False,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self._deadline = 0.0
        self._partitions: list[TopicPartition] = []
        self._records: list[ConsumerRecord] = []

    @property
    def records(self) -> list[ConsumerRecord]:
        """The records so far, by partition and offset."""
        return sorted(self._records, key=lambda record: (record.partition, record.offset))

    @property
    def topic_exists(self) -> bool:
        return bool(self._partitions)

    @property
    def partition_count(self) -> int:
        return len(self._partitions)

    async def __aenter__(self) -> _Reader:
        self._deadline = asyncio.get_running_loop().time() + self._within
        await self._consumer.start()
        try:
            await self._find_topic()
        except BaseException:
            await self._consumer.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._consumer.close()

    async def _find_topic(self) -> None:
        """Waits until the topic exists; its partitions stay unknown if the deadline passes first."""
        while not self._partitions:
            try:
                timeout_s = max(self._left, _RESPONSE_S)
                self._partitions = await self._consumer.partitions_for(self._topic, timeout_s)
            except (UnknownTopicError, TimeoutError):
                if self._left <= 0:
                    return
                await asyncio.sleep(_LOOK_AGAIN_S)
        self._consumer.assign(self._partitions)
        self._consumer.seek_to_beginning()

    @property
    def _left(self) -> float:
        return self._deadline - asyncio.get_running_loop().time()

    async def read_more(self) -> bool:
        """Waits for records; returns False after the deadline, or if the topic does not exist.

        Records that are there at the deadline are still read: a busy machine may have needed the whole time to connect.
        """
        if not self.topic_exists:
            return False
        if self._left <= 0:
            await self.read_to_end()
            return False
        self._records += await self._consumer.poll(max(self._left, 0.0))
        return True

    async def read_to_end(self) -> None:
        """Reads the records that are committed now."""
        ends = await self._consumer.end_offsets(self._partitions)
        for where in self._partitions:
            while await self._consumer.position(where) < ends[where]:
                # A transaction's marker has an offset but is not a record: the position passes it too.
                self._records += await self._consumer.poll(0.05)

    async def stay(self, seconds: float) -> None:
        """Reads records for `seconds`, or until the first ones come."""
        if seconds > 0:
            self._records += await self._consumer.poll(seconds)


async def create_topic(
    settings: Mapping[str, Any],
    topic: str,
    *,
    partitions: int = 1,
    replication_factor: int = -1,
    configs: Mapping[str, ConfigValue] | None = None,
    within: float = 30.0,
) -> str:
    """Creates a topic, and returns its name when every partition has a leader and all replicas are in sync."""
    async with Admin(settings) as admin:
        await admin.create_topic(
            topic,
            partitions=partitions,
            replication_factor=replication_factor,
            configs=configs,
            timeout=within,
        )
        await _wait_until_in_sync(admin, within, [topic], brokers=0)
    return topic


async def leader_of(settings: Mapping[str, Any], topic: str, partition: int, within: float = 30.0) -> int:
    """Waits for a leader of a partition, and returns its broker id. Raises TimeoutError if there is none in time."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    async with Admin(settings) as admin:
        while True:
            described = await admin.describe_topics([topic], timeout=within)
            leaders = {each.partition: each.leader_id for each in described[topic].partitions}
            if partition not in leaders:
                raise ValueError(f"{topic} has the partitions {sorted(leaders)}, and not {partition}")
            if leaders[partition] >= 0:
                return leaders[partition]
            if loop.time() > deadline:
                raise TimeoutError(f"{topic}-{partition} has no leader after {within:g} s")
            await asyncio.sleep(_LOOK_AGAIN_S)


async def wait_until_in_sync(
    settings: Mapping[str, Any],
    *,
    within: float = 30.0,
    topics: Iterable[str] | None = None,
    brokers: int = 0,
) -> None:
    """Waits until `brokers` brokers are there, and every partition has a leader and all of its replicas in sync.

    TimeoutError names the brokers and partitions that are missing.
    """
    async with Admin(settings) as admin:
        await _wait_until_in_sync(admin, within, None if topics is None else list(topics), brokers)


async def _wait_until_in_sync(admin: Admin, within: float, topics: list[str] | None, brokers: int) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while True:
        try:
            missing = await _missing(admin, topics, brokers)
        except KafkaError as error:
            # A topic may be deleted between two requests, and a broker that is killed does not respond.
            if not (error.retriable or isinstance(error, UnknownTopicError)):
                raise
            missing = [str(error)]
        if not missing:
            return
        if loop.time() > deadline:
            more = f"\n  and {len(missing) - _NAMED_MAX} more" if len(missing) > _NAMED_MAX else ""
            listed = "\n  ".join(missing[:_NAMED_MAX])
            raise TimeoutError(f"not in sync within {within:g} s:\n  {listed}{more}")
        await asyncio.sleep(_LOOK_AGAIN_S)


async def _missing(admin: Admin, topics: list[str] | None, brokers: int) -> list[str]:
    """Returns the brokers and partitions that are not as they should be, each in a few words."""
    found: list[str] = []
    if brokers:
        described = await admin.describe_cluster(timeout=5.0)
        if len(described.nodes) < brokers:
            found.append(f"{len(described.nodes)} of {brokers} brokers are there")
    infos: Iterable[TopicInfo]
    if topics is None:
        infos = await admin.describe_all_topics(timeout=5.0)
    else:
        infos = (await admin.describe_topics(topics, timeout=5.0)).values()
    for each in (partition for info in infos for partition in info.partitions):
        name = f"{each.topic}-{each.partition}"
        if each.leader_id < 0:
            found.append(f"{name} has no leader")
        elif len(each.in_sync) < len(each.replicas):
            found.append(f"{name}: in sync are {list(each.in_sync)} of {list(each.replicas)}")
    return found
