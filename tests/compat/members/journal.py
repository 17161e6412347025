"""The journal of a member: a line for each step, in a file that survives `kill -9`.

The line about records is written before their commit, so no processed record is missing in the journals of a group:

    r 3 120 129        records of partition 3 with offsets 120 to 129 were processed
    c 3 130            their commit succeeded
    f 3 120 129        their commit was refused, because the group had gone on to the next generation meanwhile
    a 0,1,2 / v 0      partitions were assigned, revoked
    e TEXT             an error that the application saw
    x                  the consumer was closed
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO


class JournalWriter:
    def __init__(self, path: str) -> None:
        self._file: IO[str] = open(path, "a", buffering=1)  # noqa: SIM115 (lives as long as the member)

    def processed(self, partition: int, first: int, last: int) -> None:
        self._write(f"r {partition} {first} {last}")

    def committed(self, partition: int, offset: int) -> None:
        self._write(f"c {partition} {offset}")

    def refused(self, partition: int, first: int, last: int) -> None:
        self._write(f"f {partition} {first} {last}")

    def assigned(self, partitions: Iterable[int]) -> None:
        self._write("a " + ",".join(map(str, sorted(partitions))))

    def revoked(self, partitions: Iterable[int]) -> None:
        self._write("v " + ",".join(map(str, sorted(partitions))))

    def error(self, text: object) -> None:
        self._write("e " + " ".join(str(text).split()))

    def closed(self) -> None:
        self._write("x")

    def close(self) -> None:
        """Closes the file, where the program goes on after the member."""
        self._file.close()

    def _write(self, text: str) -> None:
        self._file.write(f"{time.time_ns() // 1_000_000} {text}\n")


@dataclass(slots=True)
class Journal:
    """The journal of one or several members."""

    processed: Counter[tuple[int, int]] = field(default_factory=Counter)
    refused: set[tuple[int, int]] = field(default_factory=set)
    assignments: list[set[int]] = field(default_factory=list)
    revocations: list[set[int]] = field(default_factory=list)
    held: set[int] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)
    is_closed: bool = False
    idle_ms: int = 0  # how long, all in all, the member had no partition after its first

    def read(self, path: Path) -> Journal:
        had_none_since: int | None = None
        for line in path.read_text().splitlines() if path.exists() else ():
            when, kind, rest = [*line.split(" ", 2), ""][:3]
            if kind == "r":
                partition, first, last = map(int, rest.split())
                self.processed.update((partition, offset) for offset in range(first, last + 1))
            elif kind == "f":
                partition, first, last = map(int, rest.split())
                self.refused.update((partition, offset) for offset in range(first, last + 1))
            elif kind in ("a", "v"):
                partitions = {int(number) for number in rest.split(",") if number}
                (self.assignments if kind == "a" else self.revocations).append(partitions)
                self.held = self.held | partitions if kind == "a" else self.held - partitions
                if not self.held:
                    had_none_since = int(when) if had_none_since is None else had_none_since
                elif had_none_since is not None:
                    self.idle_ms += int(when) - had_none_since
                    had_none_since = None
            elif kind == "x":
                self.is_closed = True
            elif kind == "e":
                self.errors.append(rest)
        return self
