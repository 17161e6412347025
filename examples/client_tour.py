"""A tour of the client: write, read, tables, and a handler with retries and dead letters.

python examples/client_tour.py                     # starts a broker of its own
python examples/client_tour.py localhost:9092      # any Kafka-compatible cluster
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import nullcontext
from typing import Any

from strandline.client import Admin, Consumer, Producer
from strandline.client.deadletter import DeadLetters
from strandline.client.deadletter.redrive import redrive
from strandline.client.errors import KafkaError

TOPIC = "tour-orders"


async def write(bootstrap: str) -> None:
    async with Producer(bootstrap_servers=bootstrap, value_serializer="json", linger_ms=5) as producer:
        promises = [
            await producer.send(
                TOPIC, {"order": number, "amount": number * 10}, key=b"customer-%d" % (number % 2)
            )
            for number in range(5)
        ]
        for promise in promises:
            done = await promise
            print(f"written: partition {done.partition}, offset {done.offset}")
        # A record that no reader of JSON will understand.
        async with Producer(bootstrap_servers=bootstrap) as raw:
            await raw.send_and_wait(TOPIC, b"{not json", key=b"customer-0")
        metrics = producer.metrics()
        print(f"in {metrics['batch-total']:.0f} batches, {metrics['request-total']:.0f} requests")


async def read(bootstrap: str) -> None:
    async with Consumer(
        bootstrap_servers=bootstrap, group_id="tour", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe([TOPIC])
        count = 0
        async for record in consumer:
            print(f"read: {record.key.decode()} {record.value.decode()}")
            count += 1
            if count == 3:
                break  # Only these three are committed: the next reader of the group gets the rest.


async def read_table(bootstrap: str) -> None:
    async with Consumer(
        bootstrap_servers=bootstrap, group_id="tour", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe([TOPIC])
        table = await consumer.poll_table(10)
        print(f"table: {table.num_rows} rows of {', '.join(table.schema.names)}")


async def handle(bootstrap: str) -> None:
    tries = 0

    async def bill(record: Any) -> None:
        nonlocal tries
        if record.value["order"] == 3:
            tries += 1
            if tries < 3:
                raise ConnectionError("the bank does not answer")
            print(f"billed order 3 at attempt {tries}")

    async with DeadLetters(
        [TOPIC], bill, bootstrap_servers=bootstrap, group_id="billing", value_deserializer="json",
        backoff_ms=(100, 300),
    ) as letters:  # fmt: skip
        working = asyncio.create_task(letters.run())
        while tries < 3 or letters.metrics().get("handled-total", 0) < 5:
            await asyncio.sleep(0.05)
        letters.stop()
        await working
        print("outcomes:", {name: int(count) for name, count in letters.metrics().items()})
    for letter in await redrive(TOPIC, {"bootstrap.servers": bootstrap}, is_dry_run=True):
        print(f"dead: {letter.original_topic} offset {letter.original_offset}: {letter.error}")


async def main(bootstrap: str) -> None:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        await admin.create_topic(TOPIC, partitions=1)
    await write(bootstrap)
    await read(bootstrap)
    await read_table(bootstrap)
    await handle(bootstrap)
    try:
        Producer(bootstrap_servers=bootstrap, acks="1", enable_idempotence=True)
    except KafkaError as error:
        print(f"refused: {error}")


def broker() -> Any:
    if len(sys.argv) > 1:
        return nullcontext(sys.argv[1])
    from strandline.testing import running_broker

    return running_broker()


if __name__ == "__main__":
    with broker() as found:
        asyncio.run(main(getattr(found, "bootstrap", found)))
