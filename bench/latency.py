"""Measures end-to-end latency at a low rate: from `produce` to the moment when the consumer has the record.

Producer and consumer are librdkafka, two threads of one process, so one clock serves both. The producer does not
linger. The gaps between records are random, so that no period of the broker can coincide with them.

`python -m bench.latency JSON` is the other side of `measure`.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from math import ceil

from confluent_kafka import Consumer, Producer, TopicPartition

from bench import topics
from bench.measure import OthersMeter
from bench.peers import Peer
from bench.scenarios import LATENCY_PARTITIONS, LATENCY_RATE_PER_S, LATENCY_RECORD_BYTES
from bench.throughput import Figures

_SEED = 7
# The first records find cold connections and caches; they are sent, but not counted.
_WARM_UP_S = 2.0
_WAIT_S_MAX = 30.0

PRODUCER = {"enable.idempotence": True, "acks": "all", "linger.ms": 0}
CONSUMER = {"group.id": "bench", "enable.auto.commit": False, "enable.auto.offset.store": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    bootstrap: str
    topic: str
    partitions: int
    duration_s: float
    rate_per_s: int
    record_bytes: int


def measure(peer: Peer, topic: str, duration_s: float) -> tuple[Figures, list[int]]:
    """Returns the percentiles of a step in milliseconds, and every latency in microseconds, sorted."""
    topics.create(peer, topic, partitions=LATENCY_PARTITIONS)
    question = Question(
        bootstrap=peer.bootstrap,
        topic=topic,
        partitions=LATENCY_PARTITIONS,
        duration_s=duration_s,
        rate_per_s=LATENCY_RATE_PER_S,
        record_bytes=LATENCY_RECORD_BYTES,
    )
    others = OthersMeter(peer.pid)
    done = subprocess.run(
        [sys.executable, "-m", "bench.latency", json.dumps(asdict(question))],
        capture_output=True,
        text=True,
        timeout=duration_s + 2 * _WAIT_S_MAX,
        check=False,
    )
    others_cores = others.read()
    topics.delete(peer, topic)
    if done.returncode != 0:
        raise RuntimeError(f"the latency client failed: {done.stderr[-2000:]}")
    latencies_us: list[int] = json.loads(done.stdout)
    return percentiles(latencies_us) | {"others_cores": others_cores}, latencies_us


def percentiles(sorted_us: list[int]) -> Figures:
    return {
        f"{name}_ms": sorted_us[ceil(share * len(sorted_us)) - 1] / 1000
        for name, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))
    }


def observe(question: Question) -> list[int]:
    """Returns the latencies in microseconds, sorted."""
    consumer = Consumer({"bootstrap.servers": question.bootstrap, **CONSUMER})
    consumer.assign([TopicPartition(question.topic, n, 0) for n in range(question.partitions)])
    total_s = _WARM_UP_S + question.duration_s
    record_count = int(total_s * question.rate_per_s)
    counted_from = int(_WARM_UP_S * question.rate_per_s)
    sender = threading.Thread(target=_send, args=(question, record_count))
    sender.start()
    latencies_us = []
    deadline = time.monotonic() + total_s + _WAIT_S_MAX
    count = 0
    while count < record_count:
        message = consumer.poll(1.0)
        now_ns = time.perf_counter_ns()
        assert time.monotonic() < deadline, f"{count} of {record_count} records came"
        if message is None:
            continue
        assert message.error() is None, str(message.error())
        number, sent_ns = map(int, (message.value() or b"").split()[:2])
        if number >= counted_from:
            latencies_us.append((now_ns - sent_ns) // 1000)
        count += 1
    sender.join()
    consumer.close()
    return sorted(latencies_us)


def _send(question: Question, record_count: int) -> None:
    chance = random.Random(_SEED)
    producer = Producer({"bootstrap.servers": question.bootstrap, **PRODUCER})
    producer.list_topics(question.topic, timeout=_WAIT_S_MAX)
    due_s = time.perf_counter()
    for number in range(record_count):
        due_s += chance.expovariate(question.rate_per_s)
        time.sleep(max(due_s - time.perf_counter(), 0))
        value = f"{number} {time.perf_counter_ns()} ".encode().ljust(question.record_bytes, b".")
        producer.produce(question.topic, value, partition=number % question.partitions)
        producer.poll(0)
    producer.flush(_WAIT_S_MAX)


if __name__ == "__main__":
    print(json.dumps(observe(Question(**json.loads(sys.argv[1])))))
