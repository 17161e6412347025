"""The work of a client in one step, and its report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The work of a step: to write `record_count` records to an empty topic, or to read all of them."""

    bootstrap: str
    topic: str
    partitions: int
    record_count: int
    record_bytes: int
    payloads: Path
    codec: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The client's report: time and cost of the records that were measured, which may be all except the first ones."""

    record_count: int
    elapsed_s: float
    cpu_s: float
    busiest_thread_s: float


class Client(Protocol):
    name: str

    def pids(self) -> Sequence[int]:
        """Returns the processes of the client that live longer than a step."""

    def produce(self, work: Work) -> Done:
        """Returns when every record is acknowledged."""

    def consume(self, work: Work) -> Done:
        """Reads each partition from its beginning, without a group."""
