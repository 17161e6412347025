"""However a stream is cut into pieces, the same frames come out."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from strandline.rpc.frames import SMALL_BYTES, FrameReader

from .effort import effort

SIZES = st.integers(0, 40) | st.sampled_from(
    (SMALL_BYTES - 5, SMALL_BYTES - 4, SMALL_BYTES - 3, SMALL_BYTES, 3 * SMALL_BYTES, 20_000)
)
PIECES = st.integers(1, 50) | st.integers(1, 2 * SMALL_BYTES)


def content(number: int, size: int) -> bytes:
    return bytes((number + 1,)) * size


@effort(60)
@given(st.lists(SIZES, max_size=12), st.lists(PIECES, min_size=1, max_size=20))
def test_any_pieces_of_any_frames_give_those_frames(sizes: list[int], pieces: list[int]) -> None:
    frames = [content(number, size) for number, size in enumerate(sizes)]
    stream = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)
    reader = FrameReader(4 * SMALL_BYTES)
    found: list[bytes] = []
    position = turn = 0
    while position < len(stream):
        room = reader.buffer()
        assert len(room) > 0
        size = min(pieces[turn % len(pieces)], len(room), len(stream) - position)
        room[:size] = stream[position : position + size]
        reader.received(size)
        position += size
        turn += 1
        while (frame := reader.next_frame()) is not None or reader.growth_bytes:
            if frame is not None:
                found.append(bytes(frame))
            else:
                reader.grow()
    assert found == frames
