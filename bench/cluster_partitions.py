"""Measures a topic of many partitions on three nodes: its creation, the loss of a node, its return, and a full start.

Metadata alone says little: both brokers show a new partition in sync before they have touched a disk. So a step ends
when one write to each partition is acknowledged by all of its in-sync replicas.
"""

from __future__ import annotations

import time

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.trios import Trio, until

# An answer with thousands of partitions takes a broker some milliseconds.
_POLL_S = 0.1
_WAIT_S_MAX = 300.0


def many_partitions(trio: Trio, topic: str, partitions: int) -> dict[str, float]:
    figures = {}
    begun_s = time.monotonic()
    admin = AdminClient({"bootstrap.servers": trio.bootstrap, "log_level": 0})
    new = NewTopic(topic, num_partitions=partitions, replication_factor=3)
    admin.create_topics([new], request_timeout=_WAIT_S_MAX)[topic].result(_WAIT_S_MAX)
    _write_everywhere(trio, topic, partitions)
    figures["created_ms"] = _ms_since(begun_s)
    _until_in_sync(trio, topic, partitions)

    controller = trio.controller()
    dead = next(node for node in (1, 2, 3) if node != controller)
    survivors = [node for node in (1, 2, 3) if node != dead]
    begun_s = time.monotonic()
    trio.kill(dead)

    def is_led() -> bool:
        return all(
            partition.leader_id not in (dead, -1)
            for node in survivors
            for partition in trio.partitions(topic, node)
        )

    until(is_led, "new leaders", poll_s=_POLL_S, wait_s_max=_WAIT_S_MAX)
    figures["led_ms"] = _ms_since(begun_s)
    _write_everywhere(trio, topic, partitions)
    figures["written_ms"] = _ms_since(begun_s)

    begun_s = time.monotonic()
    trio.start_again(dead)
    _until_in_sync(trio, topic, partitions)
    figures["rejoined_ms"] = _ms_since(begun_s)

    trio.stop()
    begun_s = time.monotonic()
    trio.start()
    _write_everywhere(trio, topic, partitions)
    _until_in_sync(trio, topic, partitions)
    figures["restarted_ms"] = _ms_since(begun_s)
    return figures


def _ms_since(begun_s: float) -> float:
    return (time.monotonic() - begun_s) * 1000


def _until_in_sync(trio: Trio, topic: str, partitions: int) -> None:
    until(
        lambda: trio.is_in_sync(topic, partitions),
        f"{topic} in sync",
        poll_s=_POLL_S,
        wait_s_max=_WAIT_S_MAX,
    )


def _write_everywhere(trio: Trio, topic: str, partitions: int) -> None:
    """Writes one record to each partition, and waits until all are acknowledged."""
    failed: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": trio.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 0,
            "retry.backoff.ms": 20,
            "retry.backoff.max.ms": 100,
            "delivery.timeout.ms": int(_WAIT_S_MAX * 1000),
            "log_level": 0,
        }
    )
    for partition in range(partitions):
        producer.produce(
            topic,
            b"x",
            partition=partition,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    left = producer.flush(_WAIT_S_MAX)
    assert not failed, failed[0]
    assert not left, f"{left} writes are not acknowledged"
