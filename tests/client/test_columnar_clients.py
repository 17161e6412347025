"""Tables into topics and out of them, on both brokers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from strandline.base.ids import TopicPartition
from strandline.client import Consumer, Producer, sync
from strandline.client.consumer.fetch_buffer import FetchBuffer
from strandline.client.errors import (
    ConfigError,
    IllegalStateError,
    KafkaError,
    RecordTooLargeError,
    SerializationError,
)
from strandline.client.producer.partitioners import partition_for_key
from strandline.wire.record_batch import CorruptBatch
from tests.client.consuming import fill, make_topic, member, new_group, read
from tests.client.reading import read_all, run
from tests.record_times import recent_ms

pa = pytest.importorskip("pyarrow")
consuming = pytest.importorskip("strandline.client.consumer.poll_table")

EARLIEST = {"auto.offset.reset": "earliest"}


async def read_table(consumer: Consumer, rows: int) -> pa.Table:
    found = []
    while sum(table.num_rows for table in found) < rows:
        found.append(await consumer.poll_table(10))
        assert found[-1].num_rows, "no more rows came"
    return pa.Table.from_batches(found)


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_a_table_goes_into_a_topic_and_comes_out_of_it(bootstrap: str, topic: str, codec: str) -> None:
    make_topic(bootstrap, topic, partitions=3)
    count = 5000
    keys = [None if n % 5 == 0 else f"key-{n}" for n in range(count)]
    values = [None if n % 11 == 0 else b"%d" % n * (n % 30) for n in range(count)]
    headers = [[{"key": "n", "value": b"%d" % n}] if n % 7 == 0 else [] for n in range(count)]
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    table = pa.table(
        {
            "key": keys,
            "value": pa.array(values, pa.binary()),
            "headers": pa.array(headers, kind),
            "other": range(count),
        }
    )

    async def main() -> None:
        async with Producer(bootstrap_servers=bootstrap, compression_type=codec) as producer:
            sent = await producer.send_table(topic, table)
            await sent
            assert sent.done()
            assert sent.rows == count
        async with Consumer(EARLIEST, bootstrap_servers=bootstrap) as consumer:
            consumer.assign([TopicPartition(topic, number) for number in range(3)])
            found = await read_table(consumer, count)
            assert await consumer.poll_table(0.2) is not None
        rows = found.to_pylist()
        assert sorted((row["key"] or b"", row["value"] or b"") for row in rows) == sorted(
            ((key or "").encode(), value or b"") for key, value in zip(keys, values, strict=True)
        )
        for row in rows:
            assert row["topic"] == topic
            if row["key"] is not None:
                assert row["partition"] == partition_for_key(row["key"], 3)
        assert sum(len(row["headers"]) for row in rows) == sum(map(len, headers))

    run(main())
    assert len(read_all(bootstrap, topic, partitions=3, count=count)) == count


def test_rows_keep_their_order_place_and_time(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic, partitions=2)
    first_ms = recent_ms()
    table = pa.table(
        {
            "payload": [f"{n}" for n in range(100)],
            "at": pa.array([first_ms + n for n in range(100)], pa.timestamp("ms")),
            "where": [n % 2 for n in range(100)],
        }
    )

    async def main() -> None:
        async with Producer(bootstrap_servers=bootstrap) as producer:
            await (
                await producer.send_table(topic, table, value="payload", timestamp="at", partition="where")
            )

    run(main())
    seen = read_all(bootstrap, topic, partitions=2, count=100)
    expected = [(n % 2, n // 2, b"%d" % n, first_ms + n) for n in (*range(0, 100, 2), *range(1, 100, 2))]
    assert [(each.partition, each.offset, each.value, each.timestamp_ms) for each in seen] == expected


def test_a_group_reads_tables_and_commits_what_it_has(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic, partitions=2)
    fill(bootstrap, topic, range(1000), partitions=2)
    group = new_group()

    async def main() -> None:
        consumer = await member(bootstrap, group, [topic])
        table = await read_table(consumer, 1000)
        assert sorted(int(value) for value in table.column("value").to_pylist()) == list(range(1000))
        await consumer.close()
        again = await member(bootstrap, group, [topic])
        fill(bootstrap, topic, range(1000, 1010), partitions=2)
        assert (await read_table(again, 10)).num_rows == 10
        await again.close()

    run(main())


def test_records_and_tables_can_take_turns(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic)
    fill(bootstrap, topic, range(200))

    async def main() -> None:
        async with Consumer(EARLIEST, bootstrap_servers=bootstrap, max_poll_records=30) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            first = await read(consumer, 30)
            rest = await read_table(consumer, 170)
            assert [record.offset for record in first] == list(range(30))
            assert rest.column("offset").to_pylist() == list(range(30, 200))
            consumer.seek(TopicPartition(topic, 0), 0)
            await consumer.getone()
            with pytest.raises(IllegalStateError, match="iteration"):
                await consumer.poll_table(1)

    run(main())


def test_rows_of_a_poll_whose_bytes_are_damaged_are_not_taken_for_read(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_topic(bootstrap, topic)
    fill(bootstrap, topic, range(50))

    def damaged(*arguments: Any) -> Any:
        raise CorruptBatch("a record ends after its batch")

    async def main() -> None:
        consumer = await member(bootstrap, new_group(), [topic])
        monkeypatch.setattr(consuming, "table_of", damaged)
        with pytest.raises(KafkaError):
            await consumer.poll_table(60)
        monkeypatch.undo()
        await reads_all_again(consumer, topic)

    run(main())


def test_rows_of_a_poll_that_is_cancelled_are_not_taken_for_read(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_topic(bootstrap, topic)
    fill(bootstrap, topic, range(50))

    async def main() -> None:
        consumer = await member(bootstrap, new_group(), [topic])
        monkeypatch.setattr(consuming, "_WORKER_BYTES_MIN", 0)  # so that decoding is waited for
        buffer = consumer._started().buffer
        take, poll = buffer.take_batches, asyncio.create_task(consumer.poll_table(60))

        def cancelled(_: FetchBuffer, *arguments: int) -> Any:
            parts = take(*arguments)
            if parts:
                poll.cancel()
            return parts

        monkeypatch.setattr(FetchBuffer, "take_batches", cancelled)
        with pytest.raises(asyncio.CancelledError):
            await poll
        monkeypatch.undo()
        await reads_all_again(consumer, topic)

    run(main())


async def reads_all_again(consumer: Any, topic: str) -> None:
    """Checks that the consumer is at the beginning and reads 50 records from there, and closes it."""
    assert await consumer.position(TopicPartition(topic, 0)) == 0
    assert (await read_table(consumer, 50)).column("offset").to_pylist() == list(range(50))
    await consumer.close()


def test_a_transaction_can_hold_tables(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic)

    async def main() -> None:
        async with Producer(bootstrap_servers=bootstrap, transactional_id=new_group("tables")) as producer:
            await producer.init_transactions()
            for number, is_committed in enumerate([True, False]):
                producer.begin_transaction()
                await producer.send_table(topic, pa.table({"value": [f"{number}"] * 10}))
                if is_committed:
                    await producer.commit_transaction()
                else:
                    await producer.abort_transaction()
        async with Consumer(
            EARLIEST, bootstrap_servers=bootstrap, isolation_level="read_committed"
        ) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            assert set((await read_table(consumer, 10)).column("value").to_pylist()) == {b"0"}
            assert (await consumer.poll_table(0.3)).num_rows == 0

    run(main())


def test_tables_that_cannot_be_sent_say_why(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic)

    async def main() -> None:
        async with Producer(bootstrap_servers=bootstrap) as producer:
            with pytest.raises(ConfigError, match="no column value"):
                await producer.send_table(topic, pa.table({"other": ["x"]}))
            with pytest.raises(SerializationError, match="binary or string"):
                await producer.send_table(topic, pa.table({"value": [{"nested": 1}]}))
            with pytest.raises(RecordTooLargeError, match="row 1"):
                await producer.send_table(topic, pa.table({"value": [b"x", bytes(2_000_000)]}))
            with pytest.raises(TypeError, match="vlaue"):
                await producer.send_table(topic, pa.table({"value": ["x"]}), vlaue="value")
            assert (
                await producer.send_table(topic, pa.table({"value": pa.array([], pa.string())}))
            ).rows == 0
        await asyncio.sleep(0)

    run(main())


def test_a_row_that_the_broker_refuses_is_noticed_though_its_batch_was_split(
    bootstrap: str, topic: str
) -> None:
    make_topic(bootstrap, topic, max_message_bytes="10000")
    rows = [b"small"] * 20 + [bytes(20_000)] + [b"small"] * 20

    async def main() -> None:
        async with Producer(bootstrap_servers=bootstrap) as producer:
            sent = await producer.send_table(topic, pa.table({"value": rows}))
            with pytest.raises(RecordTooLargeError, match="1 record was not written"):
                await producer.flush()
            assert sent.done()
            with pytest.raises(RecordTooLargeError):
                sent.check()
            with pytest.raises(RecordTooLargeError):
                await sent

    run(main())


def test_tables_are_made_in_the_background(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic, partitions=1)
    where = TopicPartition(topic, 0)
    with sync.Producer(bootstrap_servers=bootstrap) as producer:
        producer.send_table(topic, pa.table({"value": [b"%d" % n for n in range(100)]}))
        producer.flush()
    with sync.Consumer(EARLIEST, bootstrap_servers=bootstrap) as consumer:
        consumer.assign([where])
        found: list[bytes] = []
        while len(found) < 100:
            table = consumer.begin_poll_table(10, max_rows=1).result()
            assert table.num_rows, "no more rows came"
            found += table["value"].to_pylist()
            assert consumer.position(where) == len(found)
        assert found == [b"%d" % n for n in range(100)]
        consumer.begin_poll_table(60).abandon()
