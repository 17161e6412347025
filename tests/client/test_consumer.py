"""A consumer by itself: reads what is there, from where it is told to."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from confluent_kafka import Producer as ConfluentProducer

from strandline.base.ids import TopicPartition
from strandline.client import Consumer, Producer
from strandline.client.consumer.fetch_buffer import FetchBuffer
from strandline.client.consumer.record_decoder import ConsumerRecord
from strandline.client.consumer.subscription import OffsetAndMetadata
from strandline.client.errors import (
    ClosedError,
    ConfigError,
    IllegalStateError,
    NoOffsetError,
    OffsetOutOfRangeError,
    SerializationError,
    UnknownTopicError,
)
from tests.client.consuming import fill, make_topic, new_group, read, values
from tests.client.reading import run
from tests.record_times import HOUR_MS, recent_ms

EARLIEST = {"auto.offset.reset": "earliest"}


def test_records_come_whole_and_in_order(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic)
    producer = ConfluentProducer({"bootstrap.servers": bootstrap})
    sent_ms = recent_ms()
    producer.produce(topic, value=b"v", key=b"k", headers=[("a", b"1"), ("a", None)], timestamp=sent_ms)
    producer.produce(topic, value=None, key=None)
    producer.flush()

    async def main() -> None:
        async with Consumer(EARLIEST, bootstrap_servers=bootstrap) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            first, second = await read(consumer, 2)
        assert (first.topic, first.partition, first.offset) == (topic, 0, 0)
        assert (first.key, first.value, first.timestamp) == (b"k", b"v", sent_ms)
        assert first.headers == (("a", b"1"), ("a", None))
        assert (second.offset, second.key, second.value) == (1, None, None)

    run(main())


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_read(bootstrap: str, topic: str, codec: str) -> None:
    make_topic(bootstrap, topic)
    producer = ConfluentProducer({"bootstrap.servers": bootstrap, "compression.type": codec})
    for number in range(500):
        producer.produce(topic, value=b"%d" % number)
    producer.flush()

    async def main() -> None:
        async with Consumer(EARLIEST, bootstrap_servers=bootstrap) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            assert values(await read(consumer, 500)) == list(range(500))

    run(main())


def test_a_poll_gives_at_most_so_many_records_and_misses_none(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic, partitions=3)
    fill(bootstrap, topic, range(3000), partitions=3)

    async def main() -> None:
        partitions = [TopicPartition(topic, number) for number in range(3)]
        async with Consumer(
            EARLIEST, bootstrap_servers=bootstrap, max_poll_records=70, max_partition_fetch_bytes=4000
        ) as consumer:
            consumer.assign(partitions)
            seen: list[int] = []
            while len(seen) < 3000:
                records = await consumer.poll(1.0)
                assert len(records) <= 70
                seen += values(records)
            assert sorted(seen) == list(range(3000))
            for number in range(3):
                mine = [value for value in seen if value % 3 == number]
                assert mine == sorted(mine)
            assert await consumer.poll(0.1) == []
            assert {consumer.lag(where) for where in partitions} == {0}

    run(main())


def test_iteration_gives_one_record_at_a_time_and_commits_no_more(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic)
    fill(bootstrap, topic, range(50))
    group = new_group()

    async def main() -> None:
        where = TopicPartition(topic, 0)
        async with Consumer(EARLIEST, bootstrap_servers=bootstrap, group_id=group) as consumer:
            consumer.subscribe([topic])
            seen = []
            async for record in consumer:
                seen.append(int(record.value))
                if len(seen) == 7:
                    assert await consumer.position(where) == 7
                    break
        async with Consumer(EARLIEST, bootstrap_servers=bootstrap, group_id=group) as consumer:
            assert (await consumer.committed([where]))[where] is not None
            consumer.subscribe([topic])
            assert values(await read(consumer, 43)) == list(range(7, 50))

    run(main())


def test_seeking_by_offset_to_both_ends_and_by_time(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic)
    first_ms = recent_ms()
    fill(bootstrap, topic, range(100), timestamp=lambda number: first_ms + number * 1000)

    async def main() -> None:
        where = TopicPartition(topic, 0)
        async with Consumer(EARLIEST, bootstrap_servers=bootstrap) as consumer:
            consumer.assign([where])
            assert values(await read(consumer, 100))[:2] == [0, 1]
            consumer.seek(where, 42)
            assert values(await read(consumer, 58))[0] == 42
            consumer.seek_to_beginning(where)
            assert await consumer.position(where) == 0
            assert values(await read(consumer, 100))[0] == 0
            consumer.seek_to_end()
            assert await consumer.position(where) == 100
            consumer.seek_to_timestamp(first_ms + 30_500, where)
            assert values(await read(consumer, 69))[0] == 31
            consumer.seek_to_timestamp(first_ms + HOUR_MS)
            assert await consumer.position(where) == 100

    run(main())


def test_offsets_by_time_and_the_ends_of_the_log(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic, partitions=2)
    first_ms = recent_ms()
    fill(bootstrap, topic, range(0, 20, 2), partitions=2, timestamp=lambda number: first_ms + number)

    async def main() -> None:
        full, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)
        async with Consumer(bootstrap_servers=bootstrap) as consumer:
            assert await consumer.partitions_for(topic) == [full, empty]
            assert await consumer.beginning_offsets([full, empty]) == {full: 0, empty: 0}
            assert await consumer.end_offsets([full, empty]) == {full: 10, empty: 0}
            found = await consumer.offsets_for_times({full: first_ms + 5, empty: 0})
            assert found[full] is not None
            assert (found[full].offset, found[full].timestamp) == (3, first_ms + 6)
            assert found[empty] is None
            assert (await consumer.offsets_for_times({full: first_ms + HOUR_MS}))[full] is None

    run(main())


def test_a_paused_partition_gives_nothing_until_it_is_resumed(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic, partitions=2)
    fill(bootstrap, topic, range(20), partitions=2)

    async def main() -> None:
        first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
        async with Consumer(EARLIEST, bootstrap_servers=bootstrap) as consumer:
            consumer.assign([first, second])
            consumer.pause()
            assert consumer.paused() == set(), "no partition was named"
            consumer.pause(first)
            consumer.resume()
            assert consumer.paused() == {first}
            assert {value % 2 for value in values(await read(consumer, 10))} == {1}
            assert await consumer.poll(0.3) == []
            consumer.resume(first)
            assert {value % 2 for value in values(await read(consumer, 10))} == {0}

    run(main())


@pytest.mark.parametrize("policy", ["earliest", "latest", "none", "by_duration:PT1H"])
def test_without_an_offset_the_policy_says_where_to_start(bootstrap: str, topic: str, policy: str) -> None:
    make_topic(bootstrap, topic)
    now = int(time.time() * 1000)
    # The first five are older than an hour.
    fill(bootstrap, topic, range(10), timestamp=lambda number: now - (7_200_000 if number < 5 else 0))

    async def main() -> None:
        where = TopicPartition(topic, 0)
        async with Consumer(
            bootstrap_servers=bootstrap, group_id=new_group(), auto_offset_reset=policy
        ) as consumer:
            consumer.assign([where])
            if policy == "none":
                with pytest.raises(NoOffsetError, match=r"auto\.offset\.reset"):
                    await consumer.poll(10)
                consumer.seek(where, 3)
                assert values(await read(consumer, 7)) == list(range(3, 10))
                return
            first = {"earliest": 0, "latest": 10, "by_duration:PT1H": 5}[policy]
            assert await consumer.position(where) == first
            fill(bootstrap, topic, [10])
            assert values(await read(consumer, 11 - first)) == list(range(first, 11))

    run(main())


def test_an_offset_out_of_range_is_reset_or_raised(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic)
    fill(bootstrap, topic, range(5))

    async def main() -> None:
        where = TopicPartition(topic, 0)
        async with Consumer(EARLIEST, bootstrap_servers=bootstrap) as consumer:
            consumer.assign([where])
            consumer.seek(where, 1000)
            assert values(await read(consumer, 5)) == list(range(5))
        async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="none") as consumer:
            consumer.assign([where])
            consumer.seek(where, 1000)
            with pytest.raises(OffsetOutOfRangeError, match="1000"):
                await consumer.poll(10)
            consumer.seek(where, 4)
            assert values(await read(consumer, 1)) == [4]

    run(main())


def test_offsets_are_committed_by_hand_by_partition_and_in_order(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic, partitions=2)
    fill(bootstrap, topic, range(20), partitions=2)
    group = new_group()

    async def main() -> None:
        first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
        async with Consumer(
            EARLIEST, bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False
        ) as consumer:
            consumer.assign([first, second])
            await read(consumer, 20)
            assert await consumer.committed([first, second]) == {first: None, second: None}
            await consumer.commit({first: 4})
            await consumer.commit({second: OffsetAndMetadata(6, "a note")})
            found = await consumer.committed([first, second])
            assert (found[first].offset, found[second].offset, found[second].metadata) == (4, 6, "a note")  # type: ignore[union-attr]
            tasks = [consumer.commit_async({first: offset}) for offset in (5, 6, 7)]
            for task in tasks:
                await task
            assert (await consumer.committed([first]))[first].offset == 7  # type: ignore[union-attr]
            await consumer.commit()
            assert {each.offset for each in (await consumer.committed([first, second])).values() if each} == {
                10
            }
        async with Consumer(EARLIEST, bootstrap_servers=bootstrap, group_id=group) as consumer:
            consumer.assign([first, second])
            assert await consumer.poll(0.5) == []

    run(main())


def test_automatic_commits_cover_what_polls_gave_and_nothing_else(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic)
    fill(bootstrap, topic, range(10))
    group = new_group()

    async def main() -> None:
        where = TopicPartition(topic, 0)
        async with Consumer(
            EARLIEST,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_commit_interval_ms=1,
            max_poll_records=4,
        ) as consumer:
            consumer.assign([where])
            assert len(await consumer.poll(10)) == 4
            await asyncio.sleep(0.1)
            found = (await consumer.committed([where]))[where]
            assert found is None or found.offset == 0, "while the poll waited, it had found where to begin"
            assert len(await consumer.poll(10)) == 4
            for _ in range(100):
                found = (await consumer.committed([where]))[where]
                if found is not None and found.offset:
                    break
                await asyncio.sleep(0.02)
            assert found is not None
            assert found.offset == 4
        async with Consumer(bootstrap_servers=bootstrap, group_id=group) as consumer:
            assert (await consumer.committed([where]))[where].offset == 8  # type: ignore[union-attr]

    run(main())


def test_aborted_transactions_are_not_seen_by_readers_of_committed_data(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic)
    producer = ConfluentProducer({"bootstrap.servers": bootstrap, "transactional.id": new_group("txn")})
    producer.init_transactions(10)
    for number, is_committed in enumerate([True, False, True]):
        producer.begin_transaction()
        for step in range(3):
            producer.produce(topic, value=b"%d" % (number * 10 + step))
        producer.flush()
        if is_committed:
            producer.commit_transaction(10)
        else:
            producer.abort_transaction(10)
    fill(bootstrap, topic, [99])

    async def main() -> None:
        async with Consumer(
            EARLIEST, bootstrap_servers=bootstrap, isolation_level="read_committed"
        ) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            assert values(await read(consumer, 7)) == [0, 1, 2, 20, 21, 22, 99]
            consumer.seek_to_beginning()
            table = await consumer.poll_table(5)
            assert table.column("value").to_pylist() == [b"0", b"1", b"2", b"20", b"21", b"22", b"99"]
        async with Consumer(EARLIEST, bootstrap_servers=bootstrap) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            assert len(await read(consumer, 10)) == 10

    run(main())


def test_deserializers_apply_and_a_poison_pill_stops_the_reader_there(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic)
    producer = ConfluentProducer({"bootstrap.servers": bootstrap})
    for value in (b'{"n": 1}', b"{", b'{"n": 3}'):
        producer.produce(topic, value=value, key="kö".encode())
    producer.flush()

    async def main() -> None:
        where = TopicPartition(topic, 0)
        async with Consumer(
            EARLIEST, bootstrap_servers=bootstrap, key_deserializer="str", value_deserializer=json.loads
        ) as consumer:
            consumer.assign([where])
            (record,) = await read(consumer, 1)
            assert (record.key, record.value) == ("kö", {"n": 1})
            with pytest.raises(SerializationError, match="offset 1"):
                await consumer.poll(5)
            consumer.seek(where, 2)
            assert (await read(consumer, 1))[0].value == {"n": 3}

    run(main())


def test_deleted_records_move_the_beginning(bootstrap: str, topic: str) -> None:
    from confluent_kafka import TopicPartition as Place
    from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]

    make_topic(bootstrap, topic)
    fill(bootstrap, topic, range(10))
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.delete_records([Place(topic, 0, 6)]).values():
        done.result(10)

    async def main() -> None:
        where = TopicPartition(topic, 0)
        async with Consumer(EARLIEST, bootstrap_servers=bootstrap) as consumer:
            consumer.assign([where])
            assert await consumer.beginning_offsets([where]) == {where: 6}
            consumer.seek(where, 2)
            assert values(await read(consumer, 4)) == [6, 7, 8, 9]

    run(main())


def test_reading_and_writing_in_one_transaction_happens_once(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic)
    make_topic(bootstrap, f"{topic}-out")
    fill(bootstrap, topic, range(6))
    group = new_group()

    async def step(is_committed: bool) -> None:
        """Reads up to three records, writes them on, and commits both, or gives both up."""
        async with (
            Producer(bootstrap_servers=bootstrap, transactional_id=group) as producer,
            Consumer(
                EARLIEST,
                bootstrap_servers=bootstrap,
                group_id=group,
                enable_auto_commit=False,
                max_poll_records=3,
            ) as consumer,
        ):
            consumer.subscribe([topic])
            await producer.init_transactions()
            records = await read(consumer, 3)
            producer.begin_transaction()
            for record in records:
                await producer.send(f"{topic}-out", record.value)
            offsets = {TopicPartition(topic, 0): records[-1].offset + 1}
            await producer.send_offsets_to_transaction(offsets, consumer.group_metadata)
            if is_committed:
                await producer.commit_transaction()
            else:
                await producer.abort_transaction()

    async def main() -> None:
        for is_committed in (True, False, True):
            await step(is_committed)
        async with Consumer(
            EARLIEST, bootstrap_servers=bootstrap, isolation_level="read_committed"
        ) as consumer:
            consumer.assign([TopicPartition(f"{topic}-out", 0)])
            assert values(await read(consumer, 6)) == list(range(6))
            assert await consumer.poll(0.3) == []

    run(main())


# Calls that do not fit


def test_calls_that_a_consumer_refuses_say_why(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic)

    async def main() -> None:
        consumer = Consumer(bootstrap_servers=bootstrap)
        with pytest.raises(IllegalStateError, match="start"):
            await consumer.poll()
        with pytest.raises(ConfigError, match=r"group\.id"):
            consumer.subscribe([topic])
        await consumer.start()
        with pytest.raises(IllegalStateError, match="subscribe"):
            await consumer.poll()
        consumer.assign([TopicPartition(topic, 0)])
        with pytest.raises(IllegalStateError, match="not assigned"):
            consumer.seek(TopicPartition(topic, 9), 0)
        with pytest.raises(ConfigError, match=r"group\.id"):
            await consumer.commit()
        with pytest.raises(UnknownTopicError):
            await consumer.end_offsets([TopicPartition(f"{topic}-missing", 0)], timeout=3)
        waiting = asyncio.get_running_loop().create_task(consumer.poll(20))
        await asyncio.sleep(0.1)
        with pytest.raises(IllegalStateError, match="another task"):
            await consumer.poll()
        await consumer.close()
        await consumer.close()
        with pytest.raises(ClosedError):
            await waiting
        with pytest.raises(ClosedError):
            await consumer.poll()

    run(main())


def test_records_of_a_poll_that_is_cancelled_are_not_lost(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_topic(bootstrap, topic)
    fill(bootstrap, topic, range(50))
    seen: list[ConsumerRecord] = []

    async def main() -> None:
        async with Consumer(EARLIEST, bootstrap_servers=bootstrap) as consumer:

            async def application() -> None:
                seen.extend(await consumer.poll(60))

            consumer.assign([TopicPartition(topic, 0)])
            task, take = asyncio.create_task(application()), FetchBuffer.take

            def cancelled(buffer: FetchBuffer, count: int) -> list[ConsumerRecord]:
                if found := take(buffer, count):
                    task.cancel()
                return found

            monkeypatch.setattr(FetchBuffer, "take", cancelled)
            with pytest.raises(asyncio.CancelledError):
                await task
            monkeypatch.undo()
            seen.extend(await read(consumer, 50 - len(seen)))
        assert values(seen) == list(range(50))

    run(main())


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="roundrobbin"):
        Consumer(bootstrap_servers="localhost:1", partition_assignment_strategy=["roundrobbin"])
    with pytest.raises(ConfigError, match="deserializer"):
        Consumer(bootstrap_servers="localhost:1", value_deserializer=7)
