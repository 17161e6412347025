"""What a client is asked to do in one step, and what it says about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Write `record_count` records to a topic that is empty, or read all of them."""

    bootstrap: str
    topic: str
    partitions: int
    record_count: int
    record_bytes: int
    payloads: Path
    codec: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Time and cost of it, on the client's side; of the records that were measured, which may be all but the first."""

    record_count: int
    elapsed_s: float
    cpu_s: float
    busiest_thread_s: float


class Client(Protocol):
    name: str

    def pids(self) -> Sequence[int]:
        """Its processes that live longer than a step."""

    def produce(self, work: Work) -> Done:
        """Returns when every record is acknowledged."""

    def consume(self, work: Work) -> Done:
        """Reads each partition from its beginning, without a group."""
