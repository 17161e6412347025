"""The main job, end to end: start a broker, write and read with a real client, check, print figures and a verdict.

`make demo` runs this. The exit status says whether every acknowledged record came back once, in order.
"""

from __future__ import annotations

import sys
import time

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from strandline.testing import running_broker

TOPIC = "orders"
PARTITIONS = 3
RECORDS = 200_000
VALUE_BYTES = 1000
SECONDS_MAX = 60


def main() -> int:
    print("Strandline demo: one broker, a real Kafka client (librdkafka)\n")
    started = time.perf_counter()
    with running_broker() as broker:
        print(f"broker ready at {broker.bootstrap} in {time.perf_counter() - started:.2f} s")
        create_topic(broker.bootstrap)
        acknowledged = write(broker.bootstrap)
        found = read(broker.bootstrap)
    return verdict(acknowledged, found)


def create_topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]).values():
        created.result(SECONDS_MAX)


def write(bootstrap: str) -> dict[tuple[int, int], int]:
    """Sends every number once, idempotently, acks=all; gives (partition, offset) of each acknowledged number."""
    acknowledged: dict[tuple[int, int], int] = {}
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5})
    padding = b"." * (VALUE_BYTES - 8)

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        if error is None:
            acknowledged[message.partition(), message.offset()] = int.from_bytes(message.value()[:8], "big")

    begun = time.perf_counter()
    for number in range(RECORDS):
        value = number.to_bytes(8, "big") + padding
        while True:
            try:
                producer.produce(TOPIC, value, partition=number % PARTITIONS, on_delivery=on_delivery)
                break
            except BufferError:
                producer.poll(0.01)
        if number % 20_000 == 0:
            producer.poll(0)
            print(f"\r  writing {number:,} of {RECORDS:,}", end="", flush=True)
    producer.flush(SECONDS_MAX)
    report("written", len(acknowledged), time.perf_counter() - begun)
    return acknowledged


def read(bootstrap: str) -> list[tuple[int, int, int]]:
    """Every record of the topic as (partition, offset, number), in the order in which it came."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "demo", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    found: list[tuple[int, int, int]] = []
    begun = time.perf_counter()
    deadline = begun + SECONDS_MAX
    while len(found) < RECORDS and time.perf_counter() < deadline:
        for message in consumer.consume(5000, 1.0):
            if message.error() is None:
                number = int.from_bytes(message.value()[:8], "big")
                found.append((message.partition(), message.offset(), number))
    report("read", len(found), time.perf_counter() - begun)
    consumer.close()
    return found


def report(what: str, count: int, seconds: float) -> None:
    megabytes = count * VALUE_BYTES / 1e6
    print(
        f"\r  {what} {count:,} records in {seconds:.2f} s: {count / seconds:,.0f}/s, {megabytes / seconds:.0f} MB/s"
    )


def verdict(acknowledged: dict[tuple[int, int], int], found: list[tuple[int, int, int]]) -> int:
    seen = {(partition, offset): number for partition, offset, number in found}
    lost = len(acknowledged.keys() - seen.keys())
    changed = sum(seen[place] != number for place, number in acknowledged.items() if place in seen)
    duplicated = len(found) - len({number for _, _, number in found})
    order = all(
        numbers == sorted(numbers)
        for partition in range(PARTITIONS)
        for numbers in [[n for p, _, n in found if p == partition]]
    )
    print(
        f"\n{len(acknowledged):,} acknowledged, {len(found):,} read, {lost} lost, {duplicated} duplicated, "
        f"{changed} changed, order {'kept' if order else 'BROKEN'}"
    )
    held = (
        len(acknowledged) == RECORDS == len(found) and not lost and not duplicated and not changed and order
    )
    print("VERDICT: held" if held else "VERDICT: BROKEN")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
