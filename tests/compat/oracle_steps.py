"""The steps of the script for the oracle: each is a request that may depend on earlier responses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from strandline.wire.api import k19_create_topics as create_topics
from strandline.wire.schema import Request, Response
from tests.record_times import recent_ms

# The time of the first record, the same for both brokers.
T0 = recent_ms()

Run = dict[str, Response]


class Step(NamedTuple):
    name: str
    version: int
    build: Callable[[Run], Request]


def each_version(
    cls: type[Request], name: str, build: Callable[[Run], Request], low: int = 0
) -> Iterator[Step]:
    for version in range(max(cls.VERSIONS.low, low), cls.VERSIONS.high + 1):
        yield Step(f"{name} v{version}", version, build)


def topic_id(run: Run, topic: str) -> bytes:
    created = run.get("CreateTopics: main topic")
    if topic == "main" and isinstance(created, create_topics.CreateTopicsResponse):
        return created.topics[0].topic_id
    return b"\x07" * 16
