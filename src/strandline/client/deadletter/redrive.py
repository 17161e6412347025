"""Puts dead letters back into the topics that they came from.

A redrive reads the dead letter topic from where the last one ended (its offsets are committed by the group
`<topic>.dlq.redrive`) to the end that the topic has now, so that a letter which dies again is not put back twice in
one go. Offsets are committed after the records are acknowledged, or with them in a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from strandline.base.ids import TopicPartition
from strandline.client.consumer.consumer import Consumer
from strandline.client.consumer.record_decoder import ConsumerRecord
from strandline.client.deadletter.letters import (
    ERROR,
    GROUP,
    Output,
    dead_letter_topic,
    origin_of,
    redriven,
)
from strandline.client.producer.producer import Producer
from strandline.client.world import ClientWorld

_POLL_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Redriven:
    """One letter, and the topic that it was, or would be, put into."""

    partition: int
    offset: int
    to: str
    original_topic: str
    original_partition: int
    original_offset: int
    original_timestamp_ms: int
    attempts: int
    group: str
    error: str


async def redrive(
    topic: str,
    settings: Mapping[str, Any],
    *,
    to: str | None = None,
    count_max: int | None = None,
    is_dry_run: bool = False,
    from_beginning: bool = False,
    transactional_id: str | None = None,
    call_seconds_max: float = 30.0,
    on_progress: Callable[[int], None] = lambda count: None,
    world: ClientWorld | None = None,
) -> list[Redriven]:
    """Puts the letters of `<topic>.dlq` back; returns the letters, which with `is_dry_run` only would be put back.

    No call to the cluster takes longer than `call_seconds_max`, and delivery no longer than delivery.timeout.ms.
    `on_progress` is called with the number of letters that are done, each time that some are.
    """
    source = dead_letter_topic(topic)
    done: list[Redriven] = []

    def put_of(record: ConsumerRecord) -> Output:
        # A record without the headers of a dead letter does not name its origin; its own place is this source.
        target = topic if to is None and origin_of(record).topic == source else to
        return redriven(record, target)

    own = {"transactional.id": transactional_id} if transactional_id else {}
    async with (
        Consumer(
            {**settings, "group.id": f"{source}.redrive", "isolation.level": "read_committed"},
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            allow_auto_create_topics=False,
            default_api_timeout_ms=int(call_seconds_max * 1000),
            world=world,
        ) as consumer,
        Producer({"max.block.ms": int(call_seconds_max * 1000), **settings, **own}, world=world) as producer,
    ):
        if transactional_id and not is_dry_run:
            await producer.init_transactions()
        partitions = await consumer.partitions_for(source)
        consumer.assign(partitions)
        if from_beginning:
            consumer.seek_to_beginning()
        ends = await consumer.end_offsets(partitions)
        for where in partitions:
            while await consumer.position(where) < ends[where] and (
                count_max is None or len(done) < count_max
            ):
                consumer.pause(*partitions)
                consumer.resume(where)
                left = None if count_max is None else count_max - len(done)
                records = await consumer.poll(_POLL_SECONDS, max_records=left)
                letters = [record for record in records if record.offset < ends[where]]
                if not is_dry_run:
                    await _put_back(consumer, producer, where, letters, put_of, transactional_id is not None)
                done += [_redriven_letter(record, put_of(record)) for record in letters]
                on_progress(len(done))
    return done


async def _put_back(
    consumer: Consumer,
    producer: Producer,
    where: TopicPartition,
    letters: list[ConsumerRecord],
    put_of: Callable[[ConsumerRecord], Output],
    is_transactional: bool,
) -> None:
    if not letters:
        return
    offsets = {where: letters[-1].offset + 1}
    if is_transactional:
        producer.begin_transaction()
    promises = []
    for record in letters:
        each = put_of(record)
        promises.append(await producer.send(each.topic, each.value, each.key, headers=each.headers))
    for promise in promises:
        await promise
    if is_transactional:
        await producer.send_offsets_to_transaction(offsets, consumer.group_metadata.group_id)
        await producer.commit_transaction()
    else:
        await consumer.commit(offsets)


def _redriven_letter(record: ConsumerRecord, put: Output) -> Redriven:
    origin = origin_of(record)
    headers = {name: (value or b"").decode(errors="replace") for name, value in record.headers}
    return Redriven(
        partition=record.partition,
        offset=record.offset,
        to=put.topic,
        original_topic=origin.topic,
        original_partition=origin.partition,
        original_offset=origin.offset,
        original_timestamp_ms=origin.timestamp_ms,
        attempts=origin.attempt,
        group=headers.get(GROUP, ""),
        error=headers.get(ERROR, ""),
    )
