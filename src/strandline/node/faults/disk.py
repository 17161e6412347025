"""A disk that is full, slow or failing while a test says so, on real files."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from strandline.base.buffers import Buffer
from strandline.base.topics import invalid_topic_name
from strandline.node.disk import RealDisk, RealFile
from strandline.node.faults.rule import FaultError

READ: Final = "read"
WRITE: Final = "write"
SYNC: Final = "sync"
_OPERATIONS: Final = (READ, WRITE, SYNC)
FULL: Final = "full"
SLOW: Final = "slow"
FAILING: Final = "failing"
_MILLISECONDS_MAX: Final = 60_000


@dataclass(slots=True, kw_only=True)
class DiskFault:
    """A fault of a disk. It strikes operations on paths that have `path` in them; empty means all."""

    kind: str
    operations: tuple[str, ...]
    path: str = ""
    milliseconds: int = 0
    fired: int = 0


def parse_disk_fault(given: Mapping[str, Any]) -> DiskFault:
    """Returns the fault that is described by plain values. Raises FaultError."""
    kind = given.get("kind")
    if kind not in (FULL, SLOW, FAILING):
        raise FaultError(f"a disk cannot be {kind!r}: it can be {FULL}, {SLOW} or {FAILING}")
    unknown = set(given) - {"kind", "operations", "topic", "milliseconds"}
    if unknown:
        raise FaultError(f"a fault of a disk has no {', '.join(sorted(unknown))}")
    topic, named = given.get("topic"), given.get("operations")
    if topic is not None and (not isinstance(topic, str) or invalid_topic_name(topic)):
        raise FaultError(f"topic={topic!r}: no topic can have this name")
    if named is not None and not isinstance(named, list | tuple):
        raise FaultError(f"operations={named!r} is not a list of {', '.join(_OPERATIONS)}")
    operations = tuple(named or ((WRITE,) if kind == FULL else (WRITE, SYNC)))
    for operation in operations:
        if operation not in _OPERATIONS:
            raise FaultError(f"a disk has no operation {operation!r}: it has {', '.join(_OPERATIONS)}")
    if kind == FULL and operations != (WRITE,):
        raise FaultError("a full disk refuses writes, and nothing else: leave operations out")
    milliseconds = given.get("milliseconds") or 0
    is_number = isinstance(milliseconds, int) and not isinstance(milliseconds, bool)
    if (kind == SLOW) != (is_number and 0 < milliseconds <= _MILLISECONDS_MAX):
        raise FaultError(
            f"a slow disk needs milliseconds, from 1 to {_MILLISECONDS_MAX}, and no other has them"
        )
    return DiskFault(
        kind=kind, operations=operations, path=f"{os.sep}{topic}-" if topic else "", milliseconds=milliseconds
    )


class DiskSwitch:
    """The fault of a disk, if there is one."""

    def __init__(self) -> None:
        self.fault: DiskFault | None = None

    def strike(self, operation: str, path: str) -> None:
        """Waits or raises OSError, if the fault is about this operation."""
        fault = self.fault
        if fault is None or operation not in fault.operations or fault.path not in path:
            return
        fault.fired += 1
        if fault.kind == SLOW:
            time.sleep(fault.milliseconds / 1000)
            return
        code = errno.ENOSPC if fault.kind == FULL else errno.EIO
        raise OSError(code, os.strerror(code), path)


class SwitchedFile(RealFile):
    __slots__ = ("_switch",)

    def __init__(self, path: str, fd: int, switch: DiskSwitch) -> None:
        super().__init__(path, fd)
        self._switch = switch

    def read_at(self, position: int, size: int) -> bytes:
        if self._switch.fault is not None:
            self._switch.strike(READ, self.path)
        return super().read_at(position, size)

    def send_to(self, socket_fd: int, position: int, size: int) -> int:
        if self._switch.fault is not None:
            self._switch.strike(READ, self.path)
        return super().send_to(socket_fd, position, size)

    def write_at(self, position: int, parts: Sequence[Buffer]) -> None:
        if self._switch.fault is not None:
            self._switch.strike(WRITE, self.path)
        super().write_at(position, parts)

    def preallocate(self, size: int) -> None:
        self._switch.strike(WRITE, self.path)
        super().preallocate(size)

    def sync(self) -> None:
        self._switch.strike(SYNC, self.path)
        super().sync()


class SwitchedDisk(RealDisk):
    """Files of the operating system, with a switch."""

    def __init__(self) -> None:
        super().__init__()
        self.switch = DiskSwitch()

    def open(self, path: str, *, create: bool = False) -> SwitchedFile:
        if self.switch.fault is not None and create and not os.path.exists(path):
            self.switch.strike(WRITE, path)
        opened = super().open(path, create=create)
        return SwitchedFile(path, opened.fd, self.switch)

    def map(self, path: str) -> Buffer:
        self.switch.strike(READ, path)
        return super().map(path)

    def read(self, path: str) -> bytes:
        self.switch.strike(READ, path)
        return super().read(path)

    def write_whole(self, path: str, data: bytes, *, sync: bool = True) -> None:
        self.switch.strike(WRITE, path)
        if sync:
            self.switch.strike(SYNC, path)
        super().write_whole(path, data, sync=sync)

    def make_directory(self, path: str) -> None:
        if self.switch.fault is not None and not os.path.isdir(path):
            self.switch.strike(WRITE, path)
        super().make_directory(path)

    def sync_directory(self, path: str) -> None:
        self.switch.strike(SYNC, path)
        super().sync_directory(path)

    def sync_volume(self, path: str) -> bool:
        self.switch.strike(SYNC, path)
        return super().sync_volume(path)

    def capacity(self, path: str) -> tuple[int, int]:
        total, usable = super().capacity(path)
        fault = self.switch.fault
        return total, 0 if fault is not None and fault.kind == FULL and not fault.path else usable
