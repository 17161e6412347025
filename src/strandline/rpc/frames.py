"""Cuts a stream of bytes into frames: a length in four bytes, then as many bytes.

Small frames are received many at a time into one buffer and copied out: the buffer is small at first, since most
connections never have more than a few frames at a time. A frame that does not fit is received into a buffer of its own,
which grows with the bytes that arrive: eight bytes that announce a hundred megabytes do not take that memory. The owner
allows each growth with `grow` when it has the memory; until then `growth_bytes` says how many more bytes that takes. A
length that is negative or above the limit raises before anything is allocated.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

SMALL_BYTES: Final = 64 * 1024
_FIRST_BYTES: Final = 4 * 1024
# The factor by which a full large buffer grows: the copies of all growths together are a third of the frame.
_GROWTH: Final = 4
# A connection that has brought a large frame gets as much memory for the next one at once, up to this limit.
_TRUSTED_BYTES_MAX: Final = 1024 * 1024
_LENGTH: Final = Struct(">i")
_LENGTH_BYTES: Final = _LENGTH.size


# The first bytes of other protocols: a client with the wrong port or security.protocol sends them.
_TLS_HANDSHAKE: Final = b"\x16\x03"
_HTTP_METHODS: Final = (
    b"GET ",
    b"PUT ",
    b"POST",
    b"HEAD",
    b"DELE",
    b"OPTI",
    b"PATC",
    b"CONN",
    b"TRAC",
    b"PRI ",
)


class BadFrame(ValueError):
    """A frame with an impossible length, for which the connection is closed. `protocol` is the one that the peer seems
    to speak."""

    def __init__(self, message: str, protocol: str | None = None) -> None:
        super().__init__(message)
        self.protocol = protocol


def _protocol_of(beginning: bytes) -> str | None:
    if beginning.startswith(_TLS_HANDSHAKE):
        return "TLS"
    return "HTTP" if beginning in _HTTP_METHODS else None


class FrameReader:
    __slots__ = (
        "_large",
        "_large_fill",
        "_large_size",
        "_small",
        "_small_start",
        "_small_view",
        "_trusted",
        "growth_bytes",
        "size_max",
        "small_end",
    )

    def __init__(self, size_max: int, *, trusts_sizes: bool = False) -> None:
        """With `trusts_sizes` a large frame is received into a buffer of its size at once, for a peer that this side
        chose."""
        self.size_max = size_max
        self._trusted = size_max if trusts_sizes else SMALL_BYTES
        self.growth_bytes = 0
        self._small = bytearray(_FIRST_BYTES)
        self._small_view = memoryview(self._small)
        self._small_start = 0
        self.small_end = 0  # the end of received bytes that were not taken yet; 0 if there are none
        self._large: memoryview | None = None
        self._large_fill = 0
        self._large_size = 0  # the size of the frame in it

    def buffer(self, size_hint: int = -1) -> memoryview:
        """Returns the room for the next received bytes: see `ports.network.Peer`."""
        if self._large is not None and self._large_fill < len(self._large):
            return self._large[self._large_fill :]
        if self.small_end == len(self._small):
            self._make_room()
        return self._small_view[self.small_end :] if self.small_end else self._small_view

    def received(self, size: int) -> bool:
        """Notes received bytes; returns True if there may be small frames now and there is room for more, the usual
        case."""
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
        """True if no more bytes can be received before `next_frame` is called."""
        large = self._large
        return self.small_end == len(self._small) if large is None else self._large_fill == len(large)

    def next_frame(self) -> memoryview | None:
        """Returns the next complete frame, without its length; None until more is received."""
        large = self._large
        if large is not None:
            if self._large_fill < len(large):
                return None
            if len(large) < self._large_size:
                self.growth_bytes = min(self._large_size, len(large) * _GROWTH) - len(large)
                return None
            self._large = None
            self._trusted = max(self._trusted, min(len(large), _TRUSTED_BYTES_MAX))
            return large
        start, end = self._small_start, self.small_end
        if end - start < _LENGTH_BYTES:
            return None
        small = self._small
        (size,) = _LENGTH.unpack_from(small, start)
        if not 0 <= size <= self.size_max:
            raise BadFrame(
                f"the frame has {size} bytes, where 0 to {self.size_max} are allowed",
                _protocol_of(_LENGTH.pack(size)),
            )
        body = start + _LENGTH_BYTES
        if body + size <= end:
            self._small_start = body + size
            frame = memoryview(small[body : body + size])
            if self._small_start == end:
                self._small_start = self.small_end = 0
            return frame
        if size + _LENGTH_BYTES > SMALL_BYTES and end == len(small):
            self.growth_bytes = min(size, self._trusted)
            self._large_size = size
        return None

    @property
    def has_begun(self) -> bool:
        """True if a part of a frame has been received."""
        return self._large is not None or self.small_end > 0

    @property
    def announced(self) -> int:
        """The size of the frame that has begun; the limit for a small frame if it is not known."""
        if self._large is not None or self.growth_bytes:
            return self._large_size
        return SMALL_BYTES

    def grow(self) -> None:
        """Takes the memory for more bytes; call it once `next_frame` has set `growth_bytes`."""
        assert self.growth_bytes
        if self._large is None:
            body, end = self._small_start + _LENGTH_BYTES, self.small_end
            arrived = self._small_view[body:end]
            self._small_start = self.small_end = 0
            capacity = self.growth_bytes
        else:
            arrived = self._large
            capacity = len(self._large) + self.growth_bytes
        grown = memoryview(bytearray(capacity))
        grown[: len(arrived)] = arrived
        self._large_fill = len(arrived)
        self._large = grown
        self.growth_bytes = 0

    def _make_room(self) -> None:
        """Makes room after an incomplete small frame."""
        start, end = self._small_start, self.small_end
        if len(self._small) < SMALL_BYTES:
            grown = bytearray(SMALL_BYTES)
            grown[: end - start] = self._small_view[start:end]
            self._small, self._small_view = grown, memoryview(grown)
            self._small_start, self.small_end = 0, end - start
            return
        assert start > 0, "a full buffer without a complete frame was replaced by a large one"
        self._small_view[: end - start] = self._small_view[start:end]
        self._small_start, self.small_end = 0, end - start
