"""The operations of a client library that tests use, and the error that they raise.

Every call blocks, is bounded in time, uses the library's own defaults where the call does not say otherwise,
and raises `Refused` with the error code of the response. Consumers assign and seek: there are no groups.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, TypeVar

from tests.compat.records import Received, Sample, Written

CALL_TIMEOUT_S = 60.0
# Some consumers wait for their last fetch when they close; the default of half a second would be most of a test.
READ_WAIT_MS = 50
# Above the largest record of a test, so that it is the broker who refuses an oversized one.
REQUEST_BYTES_MAX = 8 * 1024 * 1024


class ErrorCode(IntEnum):
    """Kafka's codes that the tests expect."""

    OFFSET_OUT_OF_RANGE = 1
    UNKNOWN_TOPIC_OR_PARTITION = 3
    MESSAGE_TOO_LARGE = 10
    INVALID_TOPIC_EXCEPTION = 17
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_CONFIG = 40
    INVALID_REQUEST = 42


class Refused(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDescription:
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescription:
    cluster_id: str
    controller: int
    brokers: dict[int, str]
    """Node id to "host:port"."""


class KafkaClient(Protocol):
    def can_write(self, sample: Sample) -> bool:
        """Some libraries refuse shapes that the record format allows; they still must read them."""
        ...

    def write(
        self,
        topic: str,
        samples: Sequence[Sample],
        *,
        partition: int | None = 0,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[Written]:
        """Write all and wait until each is acknowledged. Without a partition, the library partitions by key."""
        ...

    def read(self, topic: str, *, partition: int = 0, offset: int = 0, count: int) -> list[Received]:
        """Read on from `offset` until `count` records came. There is no reset to another offset."""
        ...

    def beginning_offsets(self, topic: str, partitions: Sequence[int]) -> dict[int, int]: ...

    def end_offsets(self, topic: str, partitions: Sequence[int]) -> dict[int, int]: ...

    def offsets_for_times(self, topic: str, timestamps_ms: Mapping[int, int]) -> dict[int, int | None]:
        """By partition, the first offset whose timestamp is not smaller, or None."""
        ...

    def create_topic(
        self,
        topic: str,
        *,
        partitions: int = 1,
        replication_factor: int = 1,
        configs: Mapping[str, str] | None = None,
    ) -> None: ...

    def delete_topic(self, topic: str) -> None: ...

    def list_topics(self) -> set[str]: ...

    def describe_topic(self, topic: str) -> dict[int, PartitionDescription]: ...

    def create_partitions(self, topic: str, *, total: int) -> None: ...

    def describe_topic_configs(self, topic: str) -> dict[str, str | None]: ...

    def alter_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None: ...

    def describe_broker_configs(self, broker: int) -> dict[str, str | None]: ...

    def delete_records(self, topic: str, before_offsets: Mapping[int, int]) -> dict[int, int]:
        """By partition, the new log start offset. Offset -1 stands for the high watermark."""
        ...

    def describe_cluster(self) -> ClusterDescription: ...


T = TypeVar("T")


def eventually(ask: Callable[[], T], holds: Callable[[T], bool], *, timeout_s: float = CALL_TIMEOUT_S) -> T:
    """Ask until the answer holds: brokers may learn of a change a moment after it was acknowledged."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            answer = ask()
            if holds(answer):
                return answer
            last = f"the last answer was {answer!r}"
        except Refused as refused:
            last = f"the last answer was the error {refused}"
        assert time.monotonic() < deadline, f"still not true after {timeout_s} s; {last}"
        time.sleep(0.02)
