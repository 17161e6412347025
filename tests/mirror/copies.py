"""The values of a topic by partition, in their order."""

from __future__ import annotations

from collections import defaultdict

from confluent_kafka import Message


def in_order(messages: list[Message]) -> dict[int, list[str]]:
    found = defaultdict(list)
    for message in messages:
        found[message.partition()].append(message.value().decode())
    return dict(found)
