"""Partitions in the form that requests have: numbers under the names of their topics."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.base.ids import TopicPartition


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, tuple[int, ...]]:
    """Returns the partitions by topic, in the order in which they come."""
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return {topic: tuple(indexes) for topic, indexes in topics.items()}
