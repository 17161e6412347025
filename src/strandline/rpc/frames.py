"""Cuts a stream of bytes into frames: a length of four bytes, then as many bytes.

Small frames are received many at a time into one buffer and copied out: a small one at first, since most connections
never have more than a few of them on the way. A frame that does not fit is received straight
into a buffer of its own, which the owner allows with `begin_large` when it has the memory: until then `wanted` says how
much that would take. A length that is negative or above the limit raises before anything is allocated.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

SMALL_BYTES: Final = 64 * 1024
_FIRST_BYTES: Final = 4 * 1024
_LENGTH: Final = Struct(">i")
_LENGTH_BYTES: Final = _LENGTH.size


class BadFrame(ValueError):
    """A length that cannot be; the connection is closed."""


class FrameReader:
    __slots__ = (
        "_large",
        "_large_fill",
        "_small",
        "_small_start",
        "_small_view",
        "size_max",
        "small_end",
        "wanted",
    )

    def __init__(self, size_max: int) -> None:
        self.size_max = size_max
        self.wanted = 0
        self._small = bytearray(_FIRST_BYTES)
        self._small_view = memoryview(self._small)
        self._small_start = 0
        self.small_end = 0  # of what has been received and not been taken; 0 where there is nothing
        self._large: memoryview | None = None
        self._large_fill = 0

    def buffer(self, size_hint: int = -1) -> memoryview:
        """Where the next received bytes go, for whoever has them: see `ports.network.Peer`."""
        if self._large is not None and self._large_fill < len(self._large):
            return self._large[self._large_fill :]
        if self.small_end == len(self._small):
            self._make_room()
        return self._small_view[self.small_end :] if self.small_end else self._small_view

    def received(self, size: int) -> bool:
        """Whether there may be small frames now and there is room for more: as it is with most."""
        large = self._large
        if large is None:
            self.small_end += size
            return self.small_end < len(self._small)
        if self._large_fill < len(large):
            self._large_fill += size
        else:
            self.small_end += size
        return False

    @property
    def is_full(self) -> bool:
        """Whether nothing more can be received before the next frame is looked for."""
        large = self._large
        return self.small_end == len(self._small) if large is None else self._large_fill == len(large)

    def next_frame(self) -> memoryview | None:
        """The next complete frame, without its length; None until more is received."""
        large = self._large
        if large is not None:
            if self._large_fill < len(large):
                return None
            self._large = None
            return large
        start, end = self._small_start, self.small_end
        if end - start < _LENGTH_BYTES:
            return None
        small = self._small
        (size,) = _LENGTH.unpack_from(small, start)
        if not 0 <= size <= self.size_max:
            raise BadFrame(f"a frame of {size} bytes, where 0 to {self.size_max} are allowed")
        body = start + _LENGTH_BYTES
        if body + size <= end:
            self._small_start = body + size
            frame = memoryview(small[body : body + size])
            if self._small_start == end:
                self._small_start = self.small_end = 0
            return frame
        if size + _LENGTH_BYTES > SMALL_BYTES:
            self.wanted = size
        return None

    def begin_large(self) -> None:
        """Receives the frame that was wanted; call it once `next_frame` has set `wanted`."""
        assert self.wanted
        body, end = self._small_start + _LENGTH_BYTES, self.small_end
        self._large = memoryview(bytearray(self.wanted))
        self.wanted = 0
        self._large_fill = end - body
        self._large[: end - body] = self._small_view[body:end]
        self._small_start = self.small_end = 0

    def _make_room(self) -> None:
        """Behind an incomplete small frame."""
        start, end = self._small_start, self.small_end
        if len(self._small) < SMALL_BYTES:
            grown = bytearray(SMALL_BYTES)
            grown[: end - start] = self._small_view[start:end]
            self._small, self._small_view = grown, memoryview(grown)
            self._small_start, self.small_end = 0, end - start
            return
        assert start > 0, "a full buffer without a complete frame has become a large one"
        self._small_view[: end - start] = self._small_view[start:end]
        self._small_start, self.small_end = 0, end - start
