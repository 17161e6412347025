"""Measures round trips, lingering and memory of a client, each in a process of its own.

    round-trip   records at random gaps, from `send` to the acknowledgement and to the consumer in the same process
    linger       a steady stream: from `send` to the acknowledgement, and how many records share a batch
    produce-memory, consume-memory   the peak of the process above what it had before the first record

`python -m bench.client_quality JSON` is the other side of `ask`.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from typing import Any

from bench.client_peers import CONFLUENT, STRANDLINE

_SEED = 7
_WARM_UP_S = 1.0
_WAIT_S_MAX = 60.0
_STEADY_S = 0.001  # between bursts of a steady stream
_SLOW_READER_S = 1.5

Figures = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    what: str
    name: str
    bootstrap: str
    topic: str
    partitions: int
    record_bytes: int
    rate_per_s: int = 200
    duration_s: float = 5.0
    linger_ms: int = 0
    buffer_bytes: int = 0
    record_count: int = 0


def ask(question: Question) -> Figures:
    done = subprocess.run(
        [sys.executable, "-m", "bench.client_quality", json.dumps(asdict(question))],
        capture_output=True,
        text=True,
        timeout=question.duration_s + 2 * _WAIT_S_MAX,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{question.name} cannot {question.what}: {done.stderr[-2000:]}")
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found


def _percentiles(name: str, seconds: list[float]) -> Figures:
    ordered = sorted(seconds)
    shares = (("p50", 0.5), ("p99", 0.99))
    return {f"{name}_{label}_ms": ordered[ceil(share * len(ordered)) - 1] * 1000 for label, share in shares}


def round_trip_strandline(question: Question) -> Figures:
    from strandline.client import Consumer, Producer, TopicPartition

    async def main() -> Figures:
        warm = int(_WARM_UP_S * question.rate_per_s)
        count = warm + int(question.duration_s * question.rate_per_s)
        acknowledged: list[float] = []
        received: list[float] = []
        async with (
            Producer(bootstrap_servers=question.bootstrap, linger_ms=0) as producer,
            Consumer(bootstrap_servers=question.bootstrap, auto_offset_reset="earliest") as consumer,
        ):
            await producer.partitions_for(question.topic)
            consumer.assign([TopicPartition(question.topic, n) for n in range(question.partitions)])

            async def send() -> None:
                chance = random.Random(_SEED)
                due = time.perf_counter()
                for number in range(count):
                    due += chance.expovariate(question.rate_per_s)
                    await asyncio.sleep(max(due - time.perf_counter(), 0))
                    begun = time.perf_counter()
                    promise = await producer.send(
                        question.topic, _stamped(number, question), partition=number % question.partitions
                    )
                    promise.add_done_callback(
                        lambda _, begun=begun: acknowledged.append(time.perf_counter() - begun)
                    )

            sending = asyncio.get_running_loop().create_task(send())
            seen = 0
            while seen < count:
                records = await consumer.poll(1.0)
                now = time.perf_counter()
                for record in records:
                    received.append(now - _stamp(record.value))
                seen += len(records)
            await sending
            await producer.flush()
        # Partitions are read in turns, so the order of arrival is not that of sending; the first ones are cold.
        return _percentiles("ack", acknowledged[warm:]) | _percentiles("receive", received[warm:])

    return _loop(main())


def round_trip_confluent(question: Question) -> Figures:
    from confluent_kafka import Consumer, Producer, TopicPartition

    warm = int(_WARM_UP_S * question.rate_per_s)
    count = warm + int(question.duration_s * question.rate_per_s)
    acknowledged: list[float] = []
    received: list[float] = []
    consumer = Consumer(
        {"bootstrap.servers": question.bootstrap, "group.id": "bench", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(question.topic, n, 0) for n in range(question.partitions)])
    producer = Producer(
        {
            "bootstrap.servers": question.bootstrap,
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 0,
        }
    )
    producer.list_topics(question.topic, timeout=_WAIT_S_MAX)
    is_done = threading.Event()

    def serve() -> None:
        """Polls in a thread, so that delivery reports are seen at once: librdkafka calls back only from poll()."""
        while not is_done.is_set():
            producer.poll(0.1)

    def send() -> None:
        chance = random.Random(_SEED)
        due = time.perf_counter()
        for number in range(count):
            due += chance.expovariate(question.rate_per_s)
            time.sleep(max(due - time.perf_counter(), 0))
            begun = time.perf_counter()
            producer.produce(
                question.topic,
                _stamped(number, question),
                partition=number % question.partitions,
                on_delivery=lambda *_, begun=begun: acknowledged.append(time.perf_counter() - begun),
            )

    threads = [threading.Thread(target=each) for each in (serve, send)]
    for thread in threads:
        thread.start()
    while len(received) < count:
        message = consumer.poll(1.0)
        if message is not None:
            assert message.error() is None, str(message.error())
            received.append(time.perf_counter() - _stamp(message.value() or b""))
    threads[1].join()
    producer.flush(_WAIT_S_MAX)
    is_done.set()
    threads[0].join()
    consumer.close()
    return _percentiles("ack", acknowledged[warm:]) | _percentiles("receive", received[warm:])


def _stamped(number: int, question: Question) -> bytes:
    return b"%d %d " % (number, time.perf_counter_ns()) + b"." * (question.record_bytes - 30)


def _stamp(value: bytes) -> float:
    return int(value.split(b" ", 2)[1]) / 1e9


def linger(question: Question) -> Figures:
    """Sends a stream of `rate_per_s` records; returns the latency of acknowledgements, and the savings of lingering."""
    from strandline.client import Producer

    async def main() -> Figures:
        value = b"." * question.record_bytes
        latencies: list[float] = []
        async with Producer(
            bootstrap_servers=question.bootstrap, linger_ms=question.linger_ms, batch_size=1 << 20
        ) as producer:
            await producer.partitions_for(question.topic)
            begun, cpu_s = time.perf_counter(), _own_cpu_s()
            sent = 0
            while (elapsed := time.perf_counter() - begun) < question.duration_s:
                while sent < elapsed * question.rate_per_s:
                    at = time.perf_counter()
                    promise = await producer.send(question.topic, value, partition=sent % question.partitions)
                    promise.add_done_callback(lambda _, at=at: latencies.append(time.perf_counter() - at))
                    sent += 1
                await asyncio.sleep(_STEADY_S)
            await producer.flush()
            cpu_s = _own_cpu_s() - cpu_s
            requests = producer.metrics()["request-total"]
        return _percentiles("ack", latencies) | {
            "records_per_request": sent / requests,
            "cpu_us": cpu_s / sent * 1e6,
        }

    return _loop(main())


def linger_throughput(question: Question) -> Figures:
    """Sends as many records as the producer accepts."""
    from strandline.client import Producer

    async def main() -> Figures:
        value = b"." * question.record_bytes
        async with Producer(bootstrap_servers=question.bootstrap, linger_ms=question.linger_ms) as producer:
            await producer.partitions_for(question.topic)
            begun, cpu_s = time.perf_counter(), _own_cpu_s()
            for number in range(question.record_count):
                await producer.send(question.topic, value, partition=number % question.partitions)
            await producer.flush()
            return {
                "records_s": question.record_count / (time.perf_counter() - begun),
                "full_speed_cpu_us": (_own_cpu_s() - cpu_s) / question.record_count * 1e6,
                "full_speed_records_per_request": question.record_count / producer.metrics()["request-total"],
            }

    return _loop(main())


def produce_memory(question: Question) -> Figures:
    from strandline.client import Producer

    async def main() -> Figures:
        async with Producer(
            bootstrap_servers=question.bootstrap, linger_ms=5, buffer_memory=question.buffer_bytes
        ) as producer:
            await producer.send_and_wait(question.topic, b"first")
            before = _forget_peak()
            for number in range(question.record_count):
                # Each value is a new object, as an application makes them: the client may not keep it for long.
                value = b"%0*d" % (question.record_bytes, number)
                await producer.send(question.topic, value, partition=number % question.partitions)
            await producer.flush()
            return {"peak_bytes": float(_peak() - before)}

    return _loop(main())


def consume_memory(question: Question) -> Figures:
    """Reads slowly at first, so that the client fetches ahead as far as it may."""
    from strandline.client import Consumer, TopicPartition

    async def main() -> Figures:
        async with Consumer(
            bootstrap_servers=question.bootstrap,
            auto_offset_reset="earliest",
            fetch_max_bytes=question.buffer_bytes,
            max_partition_fetch_bytes=question.buffer_bytes,
        ) as consumer:
            before = _forget_peak()
            consumer.assign([TopicPartition(question.topic, n) for n in range(question.partitions)])
            seen = len(await consumer.poll(5.0, max_records=1))
            await asyncio.sleep(_SLOW_READER_S)
            while seen < question.record_count:
                seen += len(await consumer.poll(5.0))
            return {"peak_bytes": float(_peak() - before)}

    return _loop(main())


def _own_cpu_s() -> float:
    return time.process_time()


def _forget_peak() -> int:
    """Resets the kernel's record of the peak, and returns the present memory of the process."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak() -> int:
    return _status("VmHWM")


def _status(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {key}")


def _loop(main: Coroutine[Any, Any, Figures]) -> Figures:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(asyncio.wait_for(main, 2 * _WAIT_S_MAX))


STEPS: dict[tuple[str, str], Callable[[Question], Figures]] = {
    ("round-trip", STRANDLINE): round_trip_strandline,
    ("round-trip", CONFLUENT): round_trip_confluent,
    ("linger", STRANDLINE): linger,
    ("linger-throughput", STRANDLINE): linger_throughput,
    ("produce-memory", STRANDLINE): produce_memory,
    ("consume-memory", STRANDLINE): consume_memory,
}


if __name__ == "__main__":
    asked = Question(**json.loads(sys.argv[1]))
    print(json.dumps(STEPS[asked.what, asked.name](asked)))
