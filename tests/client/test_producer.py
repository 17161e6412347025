"""The producer delivers what it is given, in order, once, with every setting."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from strandline.client import Producer
from strandline.client.producer.batch import RecordMetadata
from strandline.client.producer.partitioners import partition_for_key
from strandline.wire.record_batch import varint
from tests.client.reading import create, read_all, run
from tests.record_times import recent_ms


def test_a_record_arrives_with_key_value_headers_and_timestamp(bootstrap: str, topic: str) -> None:
    sent_ms = recent_ms() + 123

    async def main() -> RecordMetadata:
        await create(bootstrap, topic)
        async with Producer(bootstrap_servers=bootstrap) as producer:
            return await producer.send_and_wait(
                topic, b"value", b"key", headers=[("a", b"1"), ("a", None)], timestamp_ms=sent_ms
            )

    metadata = run(main())
    assert metadata == (topic, 0, 0, sent_ms)
    (seen,) = read_all(bootstrap, topic, count=1)
    assert seen == (0, 0, b"key", b"value", (("a", b"1"), ("a", None)), sent_ms)


def test_null_keys_null_values_and_empty_ones_stay_what_they_are(bootstrap: str, topic: str) -> None:
    async def main() -> None:
        await create(bootstrap, topic)
        async with Producer(bootstrap_servers=bootstrap) as producer:
            for key, value in ((None, None), (b"", b""), (b"k", None), (None, b"v"), (b"k", bytearray(b"v"))):
                await producer.send(topic, value, key)

    run(main())
    seen = read_all(bootstrap, topic, count=5)
    assert [(each.key, each.value) for each in seen] == [
        (None, None),
        (b"", b""),
        (b"k", None),
        (None, b"v"),
        (b"k", b"v"),
    ]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_are_in_order_with_every_codec(bootstrap: str, topic: str, codec: str) -> None:
    count = 3000

    async def main() -> list[int]:
        await create(bootstrap, topic)
        async with Producer(bootstrap_servers=bootstrap, compression_type=codec) as producer:
            promises = [await producer.send(topic, b"%06d" % number * 5) for number in range(count)]
            return [(await promise).offset for promise in promises]

    assert run(main()) == list(range(count))
    assert [each.value for each in read_all(bootstrap, topic, count=count)] == [
        b"%06d" % number * 5 for number in range(count)
    ]


def test_large_batches_are_compressed_off_the_loop_and_stay_in_order(bootstrap: str, topic: str) -> None:
    count = 600

    async def main() -> list[int]:
        await create(bootstrap, topic)
        settings = {"compression.type": "zstd", "batch.size": 300_000, "compression.zstd.level": 1}
        async with Producer(settings, bootstrap_servers=bootstrap) as producer:
            promises = [await producer.send(topic, b"%06d" % number * 300) for number in range(count)]
            return [(await promise).offset for promise in promises]

    assert run(main()) == list(range(count))


@pytest.mark.parametrize(
    ("acks", "first_offset"),
    [pytest.param("all", 0, id="all"), pytest.param(1, 0, id="1"), pytest.param(0, -1, id="0")],
)
def test_every_level_of_acknowledgement_delivers(
    bootstrap: str, topic: str, acks: Any, first_offset: int
) -> None:
    async def main() -> RecordMetadata:
        await create(bootstrap, topic)
        async with Producer(bootstrap_servers=bootstrap, acks=acks) as producer:
            first = await producer.send(topic, b"0")
            for number in range(1, 500):
                await producer.send(topic, b"%d" % number)
            return await first

    assert run(main()).offset == first_offset
    assert len(read_all(bootstrap, topic, count=500)) == 500


def test_keys_go_where_java_puts_them_and_records_without_keys_fill_batches(
    bootstrap: str, topic: str
) -> None:
    keys = [b"key-%d" % number for number in range(200)]

    async def main() -> None:
        await create(bootstrap, topic, partitions=6)
        async with Producer(bootstrap_servers=bootstrap) as producer:
            for key in keys:
                await producer.send(topic, b"v", key)
            for _ in range(2000):
                await producer.send(topic, b"x" * 100)
            await producer.send(topic, b"chosen", partition=4)

    run(main())
    seen = read_all(bootstrap, topic, partitions=6, count=2201)
    assert len(seen) == 2201
    assert all(each.partition == partition_for_key(each.key, 6) for each in seen if each.key)
    assert [each.partition for each in seen if each.value == b"chosen"] == [4]
    assert len({each.partition for each in seen if each.value == b"x" * 100}) > 1


def test_a_partitioner_of_the_users_own_and_round_robin_decide(bootstrap: str, topic: str) -> None:
    async def main() -> tuple[list[int], list[int]]:
        await create(bootstrap, topic, partitions=3)
        async with Producer(
            bootstrap_servers=bootstrap, partitioner_class=lambda t, k, v, n: int(v) % n
        ) as one:
            mine = [(await one.send_and_wait(topic, b"%d" % number)).partition for number in (0, 1, 2, 5)]
        async with Producer(bootstrap_servers=bootstrap, partitioner_class="round_robin") as other:
            turns = [(await other.send_and_wait(topic, b"v", b"same")).partition for _ in range(6)]
        return mine, turns

    mine, turns = run(main())
    assert mine == [0, 1, 2, 2]
    assert turns == [0, 1, 2, 0, 1, 2]


def test_linger_waits_for_company_and_a_full_batch_does_not(bootstrap: str, topic: str) -> None:
    async def main() -> tuple[float, float]:
        await create(bootstrap, topic)
        async with Producer(bootstrap_servers=bootstrap, linger_ms=400, batch_size=2000) as producer:
            await producer.send_and_wait(topic, b"x" * 3000)  # all connections are there now
            start = time.monotonic()
            await producer.send_and_wait(topic, b"alone")
            alone = time.monotonic() - start
            start = time.monotonic()
            promises = [await producer.send(topic, b"x" * 900) for _ in range(3)]
            await promises[0]
            return alone, time.monotonic() - start

    alone, full = run(main())
    assert alone >= 0.4
    assert full < 0.35


def test_flush_delivers_at_once_and_close_delivers_what_is_left(bootstrap: str, topic: str) -> None:
    async def main() -> tuple[bool, bool]:
        await create(bootstrap, topic)
        producer = Producer(bootstrap_servers=bootstrap, linger_ms=20_000)
        await producer.start()
        one = await producer.send(topic, b"1")
        await producer.flush()
        two = await producer.send(topic, b"2")
        was_done = two.done()
        await producer.close()
        await producer.close()
        assert one.result().offset == 0
        assert two.result().offset == 1
        return one.done(), was_done

    assert run(main()) == (True, False)


def test_serializers_and_interceptors_see_records_and_their_ends(
    bootstrap: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    ends = []

    class Stamp:
        def on_send(
            self, topic: str, value: Any, key: Any, partition: Any, timestamp: Any, headers: Any
        ) -> Any:
            return topic, value, key, partition, timestamp, [("stamp", b"1")]

        def on_acknowledgement(self, metadata: Any, error: Any) -> None:
            ends.append((metadata and metadata.offset, error))

    class Broken:
        def on_send(self, *record: Any) -> Any:
            raise RuntimeError("ignored")

    async def main() -> None:
        await create(bootstrap, topic)
        settings = {
            "key.serializer": "str",
            "value.serializer": "json",
            "interceptor.classes": [Stamp(), Broken()],
        }
        async with Producer(settings, bootstrap_servers=bootstrap) as producer:
            for _ in range(2):
                await producer.send_and_wait(topic, {"a": [1, None]}, "schlüssel")

    run(main())
    seen = read_all(bootstrap, topic, count=2)[0]
    assert (seen.key, seen.value) == ("schlüssel".encode(), b'{"a":[1,null]}')
    assert seen.headers == (("stamp", b"1"),)
    assert ends == [(0, None), (1, None)]
    (told,) = [each for each in caplog.records if each.name == "strandline.client.interceptors"]
    assert "Broken.on_send raised" in told.getMessage()
    assert told.exc_info


def test_a_batch_too_large_for_the_topic_is_split_and_nothing_is_lost(bootstrap: str, topic: str) -> None:
    count = 200

    async def main() -> list[int]:
        await create(bootstrap, topic, max_message_bytes="5000")
        async with Producer(bootstrap_servers=bootstrap, batch_size=16_384, linger_ms=20) as producer:
            promises = [await producer.send(topic, b"%05d" % number * 20) for number in range(count)]
            return [(await promise).offset for promise in promises]

    assert run(main()) == list(range(count))
    assert [each.value[:5] for each in read_all(bootstrap, topic, count=count) if each.value] == [
        b"%05d" % number for number in range(count)
    ]


def test_a_batch_of_encoded_records_is_sent_as_it_is(bootstrap: str, topic: str) -> None:
    """Columnar code hands over such batches."""
    record = b"\x00\x00\x00\x01" + varint(3) + b"abc" + b"\x00"
    second = b"\x00\x00\x02\x01" + varint(3) + b"def" + b"\x00"
    body = varint(len(record)) + record + varint(len(second)) + second
    sent_ms = recent_ms()

    async def main() -> int:
        await create(bootstrap, topic)
        async with Producer(bootstrap_servers=bootstrap) as producer:
            await producer.send(topic, b"before")
            batch = await producer.append_batch(
                topic, 0, body, 2, base_timestamp_ms=sent_ms, max_timestamp_ms=sent_ms
            )
            last = await producer.send(topic, b"after")
            await batch.wait()
            return (await last).offset

    assert run(main()) == 3
    assert [each.value for each in read_all(bootstrap, topic, count=4)] == [
        b"before",
        b"abc",
        b"def",
        b"after",
    ]


def test_many_tasks_may_send_and_wait_at_once_within_little_memory(bootstrap: str, topic: str) -> None:
    async def main() -> int:
        await create(bootstrap, topic, partitions=3)
        async with Producer(bootstrap_servers=bootstrap, buffer_memory=60_000, linger_ms=1) as producer:

            async def work(worker: int) -> int:
                for number in range(40):
                    await producer.send_and_wait(topic, b"%d-%d" % (worker, number) * 100)
                return 40

            counts = [asyncio.create_task(work(worker)) for worker in range(25)]
            total = sum([await each for each in counts])
            assert producer.metrics()["buffer-available-bytes"] == 60_000
            return total

    assert run(main()) == 1000
    assert len(read_all(bootstrap, topic, partitions=3, count=1000)) == 1000
