"""Transactions: together or not at all, in both versions of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from strandline.base.ids import TopicPartition
from strandline.client import Admin, Consumer, Producer
from strandline.client.errors import (
    IllegalStateError,
    KafkaError,
    ProducerFencedError,
    RecordTooLargeError,
    TransactionAbortedError,
)
from tests.client.features import set_transaction_version
from tests.client.reading import create, read_all, run
from tests.compat.server import Server


@pytest.fixture(params=["v1", "v2"])
def version(request: pytest.FixtureRequest, server: Server) -> int:
    """Returns the cluster's transaction.version for this test."""
    level = int(request.param[1:])
    run(set_transaction_version(server.bootstrap, level))
    return level


@asynccontextmanager
async def transactional(bootstrap: str, name: str, **settings: object) -> AsyncIterator[Producer]:
    async with Producer(
        bootstrap_servers=bootstrap, transactional_id=name, linger_ms=1, **settings
    ) as producer:
        await producer.init_transactions()
        yield producer


def values(bootstrap: str, topic: str, count: int, partitions: int = 1) -> list[bytes | None]:
    return [each.value for each in read_all(bootstrap, topic, partitions=partitions, count=count)]


@pytest.mark.usefixtures("version")
def test_committed_records_are_seen_and_aborted_ones_are_not(bootstrap: str, topic: str) -> None:
    async def main() -> None:
        await create(bootstrap, topic, partitions=2)
        async with transactional(bootstrap, topic) as producer:
            for number in range(6):
                producer.begin_transaction()
                for partition in (0, 1):
                    await producer.send(topic, b"%d" % number, partition=partition)
                if number % 2:
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()

    run(main())
    assert values(bootstrap, topic, 6, partitions=2) == [b"0", b"2", b"4"] * 2


@pytest.mark.usefixtures("version")
def test_offsets_of_a_group_are_committed_with_the_records(bootstrap: str, topic: str) -> None:
    async def main() -> list[dict[TopicPartition, int]]:
        await create(bootstrap, topic)
        where = TopicPartition(topic, 0)
        seen = []
        async with transactional(bootstrap, topic) as producer, Admin(bootstrap_servers=bootstrap) as admin:
            for number, is_commit in ((5, True), (7, False), (9, True)):
                producer.begin_transaction()
                await producer.send(topic, b"x")
                await producer.send_offsets_to_transaction({where: number}, f"group-{topic}")
                await (producer.commit_transaction() if is_commit else producer.abort_transaction())
                found = await admin.list_group_offsets(f"group-{topic}", [where], require_stable=True)
                seen.append({where: each.offset for where, each in found.items()})
        return seen

    assert [list(each.values()) for each in run(main())] == [[5], [5], [9]]


@pytest.mark.usefixtures("version")
def test_a_second_producer_with_the_same_id_fences_the_first(bootstrap: str, topic: str) -> None:
    async def main() -> None:
        await create(bootstrap, topic)
        async with transactional(bootstrap, topic) as first:
            first.begin_transaction()
            await first.send_and_wait(topic, b"first")
            async with transactional(bootstrap, topic) as second:
                second.begin_transaction()
                await second.send_and_wait(topic, b"second")
                with pytest.raises(ProducerFencedError) as caught:
                    await first.send_and_wait(topic, b"late")
                assert caught.value.retriable is False
                for call in (first.commit_transaction, first.abort_transaction):
                    with pytest.raises(ProducerFencedError):
                        await call()
                with pytest.raises(ProducerFencedError):
                    await first.send(topic, b"later")
                await second.commit_transaction()

    run(main())
    assert values(bootstrap, topic, 1) == [b"second"]


@pytest.mark.usefixtures("version")
def test_a_transaction_with_a_record_that_failed_can_only_be_aborted_and_the_next_one_works(
    bootstrap: str, topic: str
) -> None:
    async def main() -> None:
        await create(bootstrap, topic, max_message_bytes="2000")
        async with transactional(bootstrap, topic) as producer:
            producer.begin_transaction()
            await producer.send(topic, b"good")
            bad = await producer.send(topic, b"x" * 3000)
            with pytest.raises(RecordTooLargeError):
                await bad
            with pytest.raises(RecordTooLargeError):
                await producer.commit_transaction()
            await producer.abort_transaction()
            producer.begin_transaction()
            await producer.send(topic, b"again")
            await producer.commit_transaction()

    run(main())
    assert values(bootstrap, topic, 1) == [b"again"]


@pytest.mark.usefixtures("version")
def test_abort_gives_up_what_was_not_sent_and_an_empty_transaction_is_fine(
    bootstrap: str, topic: str
) -> None:
    async def main() -> None:
        await create(bootstrap, topic)
        async with Producer(
            bootstrap_servers=bootstrap, transactional_id=topic, linger_ms=20_000
        ) as producer:
            await producer.init_transactions()
            producer.begin_transaction()
            promise = await producer.send(topic, b"never")
            await producer.abort_transaction()
            with pytest.raises(TransactionAbortedError):
                await promise
            producer.begin_transaction()
            await producer.commit_transaction()
            producer.begin_transaction()
            await producer.send(topic, b"kept")
            await producer.commit_transaction()

    run(main())
    assert values(bootstrap, topic, 1) == [b"kept"]


@pytest.mark.usefixtures("version")
def test_nothing_is_taken_into_a_transaction_that_failed_and_its_abort_does_not_wait_for_it(
    bootstrap: str, topic: str
) -> None:
    async def main() -> None:
        await create(bootstrap, topic, max_message_bytes="2000")
        async with transactional(bootstrap, topic) as producer:
            producer.begin_transaction()
            with pytest.raises(RecordTooLargeError):
                await producer.send_and_wait(topic, b"x" * 3000)
            with pytest.raises(TransactionAbortedError, match="MESSAGE_TOO_LARGE") as refused:
                await producer.send(topic, b"later")
            assert isinstance(refused.value.__cause__, RecordTooLargeError)
            with pytest.raises(TransactionAbortedError):
                producer.send_nowait(topic, b"later")
            await asyncio.wait_for(producer.abort_transaction(), 30)
            producer.begin_transaction()
            await producer.send(topic, b"again")
            await producer.commit_transaction()

    run(main())
    assert values(bootstrap, topic, 1) == [b"again"]


@pytest.mark.usefixtures("version")
def test_from_the_beginning_of_a_commit_or_an_abort_nothing_more_is_taken(bootstrap: str, topic: str) -> None:
    async def main() -> None:
        await create(bootstrap, topic)
        async with transactional(bootstrap, topic) as producer:
            for is_commit in (True, False, True):
                producer.begin_transaction()
                await producer.send(topic, b"%d" % is_commit)
                end = producer.commit_transaction if is_commit else producer.abort_transaction
                ending = asyncio.create_task(end())
                await asyncio.sleep(0)
                with pytest.raises(KafkaError, match="begin_transaction"):
                    await producer.send(topic, b"late")
                with pytest.raises(KafkaError, match="begin_transaction"):
                    await producer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, "group")
                await ending

    run(main())
    assert values(bootstrap, topic, 2) == [b"1", b"1"]


@pytest.mark.usefixtures("version")
def test_an_abort_does_not_wait_for_parts_of_a_batch_that_was_too_large(bootstrap: str, topic: str) -> None:
    async def main() -> None:
        await create(bootstrap, topic, max_message_bytes="2000")
        async with transactional(bootstrap, topic) as producer:
            producer.begin_transaction()
            promises = [await producer.send(topic, b"x" * 1500) for _ in range(2)]
            while not any(batch.is_in_flight for batch in producer._accumulator.incomplete()):
                await asyncio.sleep(0)
            await asyncio.wait_for(producer.abort_transaction(), 30)  # less than delivery.timeout.ms
            # Each has its end; on a busy machine a record may have gone by itself, which is not too large.
            assert all(promise.done() for promise in promises)

    run(main())


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize("is_error", [False, True])
def test_closing_aborts_a_transaction_that_is_open_so_that_nobody_waits_for_it(
    bootstrap: str, topic: str, is_error: bool
) -> None:
    async def main() -> None:
        await create(bootstrap, topic)
        with suppress(ZeroDivisionError):
            async with Producer(
                bootstrap_servers=bootstrap, transactional_id=topic, linger_ms=300
            ) as producer:
                await producer.init_transactions()
                producer.begin_transaction()
                await producer.send_and_wait(topic, b"never committed")
                waits = await producer.send(topic, b"not sent")
                if is_error:
                    raise ZeroDivisionError
        with pytest.raises(TransactionAbortedError):
            await waits
        async with Producer(bootstrap_servers=bootstrap) as plain:
            await plain.send_and_wait(topic, b"plain")

        settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
        async with Consumer(settings, bootstrap_servers=bootstrap) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            found = await consumer.poll(30.0)  # less than transaction.timeout.ms
            assert [record.value for record in found] == [b"plain"]

    run(main())


def test_calls_out_of_place_are_refused_with_what_comes_first(bootstrap: str, topic: str) -> None:
    async def main() -> None:
        await create(bootstrap, topic)
        async with Producer(bootstrap_servers=bootstrap) as plain:
            with pytest.raises(IllegalStateError, match="not transactional"):
                await plain.init_transactions()
        async with Producer(bootstrap_servers=bootstrap, transactional_id=topic) as producer:
            with pytest.raises(IllegalStateError, match="init_transactions"):
                await producer.send(topic, b"x")
            with pytest.raises(IllegalStateError, match="init_transactions"):
                producer.begin_transaction()
            await producer.init_transactions()
            with pytest.raises(IllegalStateError, match="already"):
                await producer.init_transactions()
            for call in (producer.commit_transaction, producer.abort_transaction):
                with pytest.raises(IllegalStateError, match="begin_transaction"):
                    await call()
            with pytest.raises(IllegalStateError, match="begin_transaction"):
                await producer.send(topic, b"x")
            producer.begin_transaction()
            with pytest.raises(IllegalStateError, match="open already"):
                producer.begin_transaction()

    run(main())
