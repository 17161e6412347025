"""Runs librdkafka through confluent-kafka, in a process of its own for every step.

The producer is idempotent, with acks=all and librdkafka's default batches and linger. Records go to the partitions in
turn, as evenly spread keys would send them. Prepared messages are handed over a thousand at a time, which costs Python
least. The consumer assigns partitions from offset 0, and prefetches without sleeping.

`python -m bench.librdkafka produce|consume JSON` is the other side of `Librdkafka`.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from bench import payloads
from bench.clients import Done, Work
from bench.measure import thread_cpu_seconds

STEP_WAIT_S_MAX = 300.0

# At most this much is ahead of the broker; the default of 1 GB would measure the client's memory instead.
UNSENT_KILOBYTES_MAX = 65_536
PRODUCER = {
    "enable.idempotence": True,
    "acks": "all",
    # The default, named because it matters: a batch waits this long for company.
    "linger.ms": 5,
    "queue.buffering.max.kbytes": UNSENT_KILOBYTES_MAX,
    # A callback for each record would cost more than sending it; errors are still told, and ends of logs checked.
    "delivery.report.only.error": True,
}
CONSUMER = {
    "group.id": "bench",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    # The defaults make the client sleep for a second whenever it has 100,000 records waiting.
    "fetch.queue.backoff.ms": 1,
    "queued.min.messages": 1_000_000,
}

_HANDED_OVER_AT_ONCE = 1000
# Together a multiple of every number of partitions.
_BATCHES_PREPARED = 12
# No more than are left, or the last call would wait for what does not come.
_TAKEN_AT_ONCE = 2000
# Below librdkafka's own limit of 100,000, so that it never refuses a message.
_UNSENT_MAX = 90_000
_FULL_WAIT_S = 0.001


class Librdkafka:
    name = "librdkafka"

    def pids(self) -> Sequence[int]:
        return ()

    def produce(self, work: Work) -> Done:
        return _run("produce", work)

    def consume(self, work: Work) -> Done:
        return _run("consume", work)


def _run(what: str, work: Work) -> Done:
    question = json.dumps(asdict(work) | {"payloads": str(work.payloads)})
    done = subprocess.run(
        [sys.executable, "-m", "bench.librdkafka", what, question],
        capture_output=True,
        text=True,
        timeout=STEP_WAIT_S_MAX,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"librdkafka cannot {what}: {done.stderr[-2000:]}")
    return Done(**json.loads(done.stdout))


class _Meter:
    def __init__(self) -> None:
        self._cpu_s = _own_cpu_s()
        self._threads = thread_cpu_seconds(_self())
        self._begun_s = time.perf_counter()

    def read(self, record_count: int) -> Done:
        elapsed_s = time.perf_counter() - self._begun_s
        threads = thread_cpu_seconds(_self())
        used = [seconds - self._threads.get(thread, 0.0) for thread, seconds in threads.items()]
        return Done(
            record_count=record_count,
            elapsed_s=elapsed_s,
            cpu_s=_own_cpu_s() - self._cpu_s,
            busiest_thread_s=max(used),
        )


def _self() -> int:
    return int(Path("/proc/self").resolve().name)


def _own_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def produce(work: Work) -> Done:
    failed: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer(
        {
            "bootstrap.servers": work.bootstrap,
            "compression.type": work.codec,
            "on_delivery": on_delivery,
            **PRODUCER,
        }
    )
    batches = _prepared(work)
    # Finding the leader and getting a producer id takes librdkafka up to half a second, with either broker.
    _hand_over(producer, work.topic, batches[0])
    producer.flush(STEP_WAIT_S_MAX)
    unsent_max = min(_UNSENT_MAX, UNSENT_KILOBYTES_MAX * 1024 // work.record_bytes)
    unsent_max = max(unsent_max - _HANDED_OVER_AT_ONCE, _HANDED_OVER_AT_ONCE)
    meter = _Meter()
    for number in range(1, work.record_count // _HANDED_OVER_AT_ONCE):
        while len(producer) > unsent_max:
            producer.poll(_FULL_WAIT_S)
        _hand_over(producer, work.topic, batches[number % len(batches)])
    unsent = producer.flush(STEP_WAIT_S_MAX)
    done = meter.read(work.record_count - _HANDED_OVER_AT_ONCE)
    assert unsent == 0, f"{unsent} records were not acknowledged in time"
    assert not failed, f"{len(failed)} records failed: {failed[0]}"
    return done


def _hand_over(producer: Producer, topic: str, messages: list[dict[str, Any]]) -> None:
    taken = producer.produce_batch(topic, messages)
    assert taken == len(messages), f"librdkafka took {taken} of {len(messages)} messages"


def _prepared(work: Work) -> list[list[dict[str, Any]]]:
    """Returns batches that are used again and again; together they have the same number of records for every
    partition."""
    assert work.record_count % _HANDED_OVER_AT_ONCE == 0
    values = payloads.read_lines(work.payloads)
    numbers = range(_HANDED_OVER_AT_ONCE * _BATCHES_PREPARED)
    messages = [{"value": values[n % len(values)], "partition": n % work.partitions} for n in numbers]
    return [
        messages[start : start + _HANDED_OVER_AT_ONCE]
        for start in range(0, len(messages), _HANDED_OVER_AT_ONCE)
    ]


def consume(work: Work) -> Done:
    consumer = Consumer({"bootstrap.servers": work.bootstrap, **CONSUMER})
    consumer.list_topics(work.topic, timeout=STEP_WAIT_S_MAX)
    deadline = time.monotonic() + STEP_WAIT_S_MAX
    meter = _Meter()
    consumer.assign([TopicPartition(work.topic, partition, 0) for partition in range(work.partitions)])
    count = 0
    while count < work.record_count:
        messages = consumer.consume(min(_TAKEN_AT_ONCE, work.record_count - count), 1.0)
        count += len(messages)
        if messages and (error := messages[-1].error()) is not None:
            raise RuntimeError(str(error))
        assert time.monotonic() < deadline, f"{count} of {work.record_count} records came in time"
    done = meter.read(count)
    assert count == work.record_count, f"{count} records came, {work.record_count} were written"
    consumer.close()
    return done


def main() -> int:
    what, question = sys.argv[1:]
    asked = json.loads(question)
    work = Work(**asked | {"payloads": Path(asked["payloads"])})
    print(json.dumps(asdict({"produce": produce, "consume": consume}[what](work))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
