"""Checks the bytes of closed segments on the disk, a part at a time: every batch is whole, in order, and has its CRC.

Recovery does not find bits that flip after they were synced; otherwise they are found only when a consumer reads them.
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
    """The position up to which a segment was checked, and the damage at which the check ended."""

    position: int
    damage: DamagedSegment | None


def scrub_part(disk: Disk, path: str, position: int, end: int, bytes_max: int) -> ScrubbedPart:
    """Checks batches from `position` on, up to `end` or about `bytes_max` bytes; raises OSError."""
    file = disk.open(path)
    try:
        stop = min(end, position + bytes_max)
        while position < stop:
            data = memoryview(file.read_at(position, min(end - position, max(bytes_max, HEADER_BYTES))))
            checked, why = _check(data, is_end=position + len(data) >= end)
            if checked == 0 and why is None:
                # The batch is larger than a part.
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
    """Returns how many bytes of whole batches are sound, and the fault after them."""
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
    """The progress of scrubbing one log directory. It is stored in the directory, so that a restart continues there."""

    started_ms: int = 0
    finished_ms: int = 0  # the time of the last whole pass
    next_partition: str = ""  # the pass continues here; empty between passes
    next_offset: int = 0  # the base offset of the segment
    segments: int = 0
    bytes_read: int = 0
    damaged: int = 0  # the damaged batches of this pass
    findings: list[str] = field(default_factory=list)

    def note(self, damage: DamagedSegment) -> None:
        self.damaged += 1
        self.findings = [*self.findings, str(damage)][-_FINDINGS_MAX:]

    def render(self) -> bytes:
        return json.dumps(asdict(self), indent=2).encode() + b"\n"


def parse_state(data: bytes) -> ScrubState:
    """Returns the saved state; a new one if the file is malformed, since it only says where to continue."""
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
