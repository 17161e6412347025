"""Reads the contents of a topic without Spark."""

from __future__ import annotations

from typing import Any

from strandline.client.sync import Consumer, TopicPartition


def rows_of(bootstrap: str, topic: str, partitions: int) -> list[Any]:
    """Every record that a reader of committed data sees up to the last stable offset."""
    found: list[Any] = []
    settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    with Consumer(settings, bootstrap_servers=bootstrap) as consumer:
        places = [TopicPartition(topic, number) for number in range(partitions)]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        while any(consumer.position(where) < ends[where] for where in places):
            found += consumer.poll(1, max_records=10_000)
    return found
