"""The faults of a simulated disk, which the author of a scenario decides.

A fault names an operation and a pattern of paths; it may let some operations pass first and strike a number of times.
Operations are called as the port calls them: open, read, write, truncate, sync, rename, remove, sync_directory, …
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

FOREVER: Final = 1 << 60


class Fault:
    __slots__ = ("error_number", "left", "operation", "pass_first", "pattern")

    def __init__(self, operation: str, pattern: str, error_number: int, pass_first: int, times: int) -> None:
        self.operation = operation
        self.pattern = pattern
        self.error_number = error_number
        self.pass_first = pass_first
        self.left = times

    def strikes(self, operation: str, path: str) -> bool:
        if operation != self.operation or not self.left or not fnmatchcase(path, self.pattern):
            return False
        if self.pass_first:
            self.pass_first -= 1
            return False
        self.left -= 1
        return True


class DiskFaults:
    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._flips: list[tuple[str, int]] = []
        self._operations_left: int | None = None
        self.is_none = True  # asked before each operation

    def fail(
        self, operation: str, pattern: str, error_number: int, *, pass_first: int = 0, times: int = FOREVER
    ) -> Fault:
        """Makes operations on paths of this pattern fail. A failing write may have written a part of its bytes; a
        failing sync has synced nothing."""
        fault = Fault(operation, pattern, error_number, pass_first, times)
        self._faults.append(fault)
        self.is_none = False
        return fault

    def flip_bit_on_read(self, pattern: str, position: int) -> None:
        """Makes every read of the byte at `position` find its lowest bit wrong; the device itself is sound."""
        self._flips.append((pattern, position))
        self.is_none = False

    def heal(self) -> None:
        self._faults.clear()
        self._flips.clear()
        self.spare()
        self.is_none = True

    def kill_amid_operation(self, number: int) -> None:
        """Has the process killed during the disk operation that comes after this many others."""
        self._operations_left = number
        self.is_none = False

    def spare(self) -> None:
        """Has no operation kill the process any more."""
        self._operations_left = None

    def error_of(self, operation: str, path: str) -> int | None:
        return next((fault.error_number for fault in self._faults if fault.strikes(operation, path)), None)

    def flipped(self, path: str, position: int, data: bytes) -> bytes:
        for pattern, at in self._flips:
            if position <= at < position + len(data) and fnmatchcase(path, pattern):
                changed = bytearray(data)
                changed[at - position] ^= 1
                data = bytes(changed)
        return data

    def kills_now(self) -> bool:
        """Counts an operation; returns True for the one during which the process is killed."""
        if self._operations_left is None:
            return False
        if self._operations_left:
            self._operations_left -= 1
            return False
        self._operations_left = None
        return True
