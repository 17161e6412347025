"""Tests on an event loop: a broker of its own for each test, in this process."""

from __future__ import annotations

from strandline.client import Consumer, Producer


async def test_a_consumer_gets_what_a_producer_sends(strandline_async_broker):
    await strandline_async_broker.create_topic("orders", partitions=2)
    async with Producer(bootstrap_servers=strandline_async_broker.bootstrap) as producer:
        await producer.send_and_wait("orders", b"book", key=b"ada")
    async with Consumer(
        "orders",
        bootstrap_servers=strandline_async_broker.bootstrap,
        group_id="billing",
        auto_offset_reset="earliest",
    ) as consumer:
        record = await consumer.getone()
    assert (record.key, record.value) == (b"ada", b"book")
