"""Reads every file of a partition and reports each fault with file and position. It changes nothing.

1. Batches are whole, their CRC is right, their records can be read, offsets ascend and stay within their segment.
2. Indexes ascend and name batches that exist.
3. Sequences of a producer follow each other, as long as no offset is missing: compaction and deletion remove batches.
4. Snapshots, leader epochs and transaction indexes can be read, and epochs begin where they begin in the log.

Bytes after the last whole batch of the last segment are no damage: a crash leaves them, and recovery cuts them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from strandline.ports.disk import Disk
from strandline.storage import checkpoints, names
from strandline.storage.dumping import can_dump, dump_file, read_batches
from strandline.wire.record_batch import (
    MAGIC,
    NO_SEQUENCE,
    BatchHeader,
    CorruptBatch,
    checksum,
    next_sequence,
)
from strandline.wire.record_check import check

ERROR: Final = "error"
NOTE: Final = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFinding:
    severity: str
    file: str
    what: str


class UnknownDirectory(ValueError):
    """A path that is no partition's directory."""


def verify(disk: Disk, directory: str) -> list[LogFinding]:
    return _Verification(disk, directory).run()


class _Verification:
    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._findings: list[LogFinding] = []
        self._batches: dict[int, int] = {}  # last offset by position, in the segment that is being read
        self._times: dict[int, int] = {}  # largest timestamp by last offset
        self._next_offset = -1
        self._epoch = -1
        self._epoch_starts: dict[int, int] = {}
        self._sequences: dict[int, tuple[int, int]] = {}  # producer's epoch and next sequence

    def run(self) -> list[LogFinding]:
        present = self._disk.names(self._directory)
        bases = [
            base
            for name in present
            if name.endswith(names.LOG) and (base := names.base_offset_of(name)) is not None
        ]
        if not bases:
            raise UnknownDirectory(f"{self._directory} has no segments; name the directory of a partition")
        for number, base in enumerate(bases):
            end = bases[number + 1] if number + 1 < len(bases) else None
            self._segment(base, end)
            for kind in (names.OFFSET_INDEX, names.TIME_INDEX):
                self._index(names.segment_file(base, kind), kind)
        for name in present:
            if name.endswith((names.SNAPSHOT, names.TRANSACTION_INDEX)) or name == names.LEADER_EPOCHS:
                self._readable(name)
            elif name.endswith((names.CLEANED, names.SWAP, names.DELETED)):
                self._say(NOTE, name, "a crash left it, or it is about to be removed; a start deals with it")
        self._epochs()
        return self._findings

    def _say(self, severity: str, name: str, what: str) -> None:
        self._findings.append(LogFinding(severity=severity, file=f"{self._directory}/{name}", what=what))

    def _segment(self, base: int, end: int | None) -> None:
        name = names.segment_file(base, names.LOG)
        self._batches, self._times = {}, {}
        if self._next_offset != base:
            self._sequences.clear()
        self._next_offset = max(self._next_offset, base)
        try:
            for position, header, batch in read_batches(self._disk, f"{self._directory}/{name}"):
                self._batch(name, position, header, batch, end)
        except CorruptBatch as error:
            if end is None:
                self._say(NOTE, name, f"{error}: a torn end, which recovery cuts")
            else:
                self._say(ERROR, name, f"{error}, and segments follow: it is damaged")

    def _batch(self, name: str, position: int, header: BatchHeader, batch: bytes, end: int | None) -> None:
        place = f"the batch at offset {header.base_offset}, position {position}"
        if header.magic != MAGIC:
            self._say(ERROR, name, f"magic {header.magic} in {place}")
        if checksum(memoryview(batch)) != header.crc:
            self._say(ERROR, name, f"a wrong CRC in {place}")
            return
        if header.base_offset < self._next_offset or header.last_offset_delta < 0:
            self._say(ERROR, name, f"{place}, where at least offset {self._next_offset} is expected")
        if end is not None and header.last_offset >= end:
            self._say(ERROR, name, f"{place} ends after its segment, at {header.last_offset}")
        verdict = check(batch)
        if verdict.fault:
            advice = f"`strandline log repair --drop-batch {header.base_offset}` takes it out"
            self._say(ERROR, name, f"{place} cannot be read: {verdict.sentence()}; {advice}")
        if header.leader_epoch < self._epoch:
            self._say(ERROR, name, f"leader epoch {header.leader_epoch} after {self._epoch} in {place}")
        elif header.leader_epoch > self._epoch:
            self._epoch = header.leader_epoch
            self._epoch_starts[header.leader_epoch] = header.base_offset
        self._sequence(name, place, header)
        self._batches[position] = header.last_offset
        self._times[header.last_offset] = header.max_timestamp
        self._next_offset = header.next_offset

    def _sequence(self, name: str, place: str, header: BatchHeader) -> None:
        if header.base_offset != self._next_offset:
            self._sequences.clear()  # the missing batches may have had the sequences between
        if header.producer_id < 0 or header.base_sequence == NO_SEQUENCE:
            return
        epoch, expected = self._sequences.get(header.producer_id, (-1, 0))
        if epoch == header.producer_epoch and header.base_sequence != expected:
            what = f"producer {header.producer_id} goes on with {header.base_sequence} instead of {expected}"
            self._say(ERROR, name, f"{what} in {place}")
        following = next_sequence(header.base_sequence, header.last_offset_delta + 1)
        self._sequences[header.producer_id] = (header.producer_epoch, following)

    def _index(self, name: str, kind: str) -> None:
        path = f"{self._directory}/{name}"
        if not self._disk.exists(path):
            self._say(NOTE, name, "it is missing; a start rebuilds it")
            return
        rows = list(dump_file(self._disk, path))
        if rows and "error" in rows[-1]:
            self._say(ERROR, name, f"{rows[-1]['error']}; `strandline log repair` rebuilds it")
            return
        first = "position" if kind == names.OFFSET_INDEX else "timestamp"
        if any(
            earlier[first] >= later[first] or earlier["offset"] >= later["offset"]
            for earlier, later in pairwise(rows)
        ):
            self._say(ERROR, name, "entries do not ascend")
        for row in rows:
            if kind == names.OFFSET_INDEX and self._batches.get(row["position"]) != row["offset"]:
                self._say(
                    ERROR, name, f"no batch at position {row['position']} ends at offset {row['offset']}"
                )
            if kind == names.TIME_INDEX and self._times.get(row["offset"]) != row["timestamp"]:
                what = f"no batch ends at offset {row['offset']} with timestamp {row['timestamp']}"
                self._say(ERROR, name, what)

    def _readable(self, name: str) -> None:
        assert can_dump(name)
        rows = list(dump_file(self._disk, f"{self._directory}/{name}"))
        if rows and "error" in rows[-1]:
            self._say(ERROR, name, rows[-1]["error"])

    def _epochs(self) -> None:
        path = f"{self._directory}/{names.LEADER_EPOCHS}"
        if not self._disk.exists(path):
            return
        try:
            known = dict(checkpoints.parse_epochs(self._disk.read(path)))
        except checkpoints.MalformedCheckpoint:
            return  # reported before
        begin = min(known.values(), default=0)
        for epoch, first_offset in self._epoch_starts.items():
            if first_offset < begin:
                continue  # the batch is from before the log's start, which had moved when the epochs were written
            if known.get(epoch, first_offset + 1) > first_offset:
                what = f"epoch {epoch} is in the log from offset {first_offset} on"
                begins = f"and begins at {known[epoch]} here" if epoch in known else "and is not here"
                self._say(ERROR, names.LEADER_EPOCHS, f"{what}, {begins}")
