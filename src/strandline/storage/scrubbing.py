"""Checks what is on the disk of a closed segment, a part at a time: every batch whole, in order, and with its CRC.

Bits that flip after they were synced are found by no recovery, and otherwise only when somebody reads them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

from strandline.ports.disk import Disk
from strandline.storage.segment import DamagedSegment
from strandline.wire.record_batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC, checksum, read_header

STATE_FILE: Final = "strandline-scrub.json"
_FINDINGS_MAX: Final = 100


class ScrubbedPart(NamedTuple):
    """Up to where a segment was checked, and the damage that ended it."""

    position: int
    damage: DamagedSegment | None


def scrub_part(disk: Disk, path: str, position: int, end: int, bytes_max: int) -> ScrubbedPart:
    """Checks batches from `position` on, up to `end` or for about `bytes_max` bytes. Raises OSError."""
    file = disk.open(path)
    try:
        stop = min(end, position + bytes_max)
        while position < stop:
            data = memoryview(file.read_at(position, min(end - position, max(bytes_max, HEADER_BYTES))))
            checked, why = _check(data, is_end=position + len(data) >= end)
            if checked == 0 and why is None:
                # A batch that is larger than a part.
                size = read_header(data).size
                data = memoryview(file.read_at(position, min(size, end - position)))
                checked, why = _check(data, is_end=True)
            position += checked
            if why is not None:
                return ScrubbedPart(position, DamagedSegment(path, position, why))
        return ScrubbedPart(position, None)
    finally:
        file.close()


def _check(data: memoryview, *, is_end: bool) -> tuple[int, str | None]:
    """How many bytes of whole batches are sound, and what is wrong after them."""
    position = 0
    while len(data) - position >= HEADER_BYTES:
        header = read_header(data, position)
        if header.length + LOG_OVERHEAD_BYTES < HEADER_BYTES or header.magic != MAGIC:
            return position, f"no record batch (length {header.length}, magic {header.magic})"
        if position + header.size > len(data):
            return (position, "a batch that is cut off") if is_end else (position, None)
        if checksum(data[position : position + header.size]) != header.crc:
            return position, "a batch with a wrong CRC"
        position += header.size
    if is_end and position < len(data):
        return position, "a batch that is cut off"
    return position, None


@dataclass(slots=True)
class ScrubState:
    """How far the scrubbing of one log directory is; kept in the directory, so that a restart goes on with it."""

    started_ms: int = 0
    finished_ms: int = 0  # of the last whole pass
    next_partition: str = ""  # the pass goes on here; empty between passes
    next_offset: int = 0  # the base offset of the segment
    segments: int = 0
    bytes_read: int = 0
    damaged: int = 0  # findings of this pass
    findings: list[str] = field(default_factory=list)

    def note(self, damage: DamagedSegment) -> None:
        self.damaged += 1
        self.findings = [*self.findings, str(damage)][-_FINDINGS_MAX:]

    def render(self) -> bytes:
        return json.dumps(asdict(self), indent=2).encode() + b"\n"


def parse_state(data: bytes) -> ScrubState:
    """The state that was saved; a new one if the file makes no sense, since it only says where to go on."""
    try:
        found: dict[str, Any] = json.loads(data)
        known = {name: found[name] for name in ScrubState.__slots__}
        state = ScrubState(**known)
        numbers = (state.started_ms, state.finished_ms, state.next_offset, state.segments, state.bytes_read)
        if not all(type(number) is int for number in numbers) or not isinstance(state.next_partition, str):
            return ScrubState()
    except (ValueError, TypeError, KeyError):
        return ScrubState()
    return state


def load_state(disk: Disk, directory: str) -> ScrubState:
    path = f"{directory}/{STATE_FILE}"
    return parse_state(disk.read(path)) if disk.exists(path) else ScrubState()
