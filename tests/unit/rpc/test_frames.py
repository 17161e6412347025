"""Frames: cut out of a stream, bounded before anything is allocated."""

from __future__ import annotations

import struct

import pytest

from strandline.rpc.frames import SMALL_BYTES, BadFrame, FrameReader

LIMIT = 1_000_000


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def give(reader: FrameReader, data: bytes) -> None:
    """In as many pieces as the reader has room for; the caller gives no more than fits into its buffers."""
    while data:
        room = reader.buffer()
        size = min(len(room), len(data))
        room[:size] = data[:size]
        reader.received(size)
        data = data[size:]


def test_small_frames_come_out_in_order() -> None:
    reader = FrameReader(LIMIT)
    give(reader, frame(b"one") + frame(b"") + frame(b"three") + b"\x00\x00")
    assert [bytes(reader.next_frame() or b"none") for _ in range(1)] == [b"one"]
    assert reader.next_frame() == b""
    assert reader.next_frame() == b"three"
    assert reader.next_frame() is None
    give(reader, b"\x00\x02hi")
    assert reader.next_frame() == b"hi"


@pytest.mark.parametrize("size", [-1, -(1 << 31), LIMIT + 1, (1 << 31) - 1])
def test_a_length_that_cannot_be_is_refused(size: int) -> None:
    reader = FrameReader(LIMIT)
    give(reader, struct.pack(">i", size))
    with pytest.raises(BadFrame):
        reader.next_frame()
    assert reader.growth_bytes == 0


def receive(reader: FrameReader, data: bytes) -> memoryview | None:
    """Gives it everything, growing whenever it wants to; the frame, if it is complete."""
    while data:
        size = min(len(reader.buffer()), len(data))
        give(reader, data[:size])
        data = data[size:]
        while (found := reader.next_frame()) is None and reader.growth_bytes:
            reader.grow()
        if found is not None:
            assert not data
            return found
    return None


def test_a_frame_of_exactly_the_limit_is_taken() -> None:
    body = bytes(LIMIT)
    assert receive(FrameReader(LIMIT), frame(body)) == body


def test_an_announced_size_takes_no_memory_until_bytes_arrive() -> None:
    reader = FrameReader(LIMIT)
    give(reader, struct.pack(">i", LIMIT) + bytes(4))
    assert reader.next_frame() is None
    assert reader.growth_bytes == 0
    assert reader.has_begun


def test_a_large_frame_takes_a_few_times_as_much_memory_as_has_arrived() -> None:
    body = bytes(range(256)) * 4000
    reader = FrameReader(len(body))
    arrived, taken, data = 0, 4096, frame(body)
    while arrived < len(data):
        size = min(len(reader.buffer()), 1000, len(data) - arrived)
        give(reader, data[arrived : arrived + size])
        arrived += size
        found = reader.next_frame()
        if reader.growth_bytes:
            taken += reader.growth_bytes
            reader.grow()
        assert taken <= 5 * max(arrived, SMALL_BYTES)
    assert found == body


def test_a_connection_that_brought_a_large_frame_gets_as_much_for_the_next_at_once() -> None:
    body = bytes(10 * SMALL_BYTES)
    reader = FrameReader(LIMIT)
    assert receive(reader, frame(body)) == body
    give(reader, frame(body)[: len(reader.buffer())])
    assert reader.next_frame() is None
    assert reader.growth_bytes == len(body)


def test_the_size_that_a_chosen_peer_announces_is_believed() -> None:
    reader = FrameReader(LIMIT, trusts_sizes=True)
    give(reader, frame(bytes(LIMIT))[: len(reader.buffer())])
    assert reader.next_frame() is None
    assert reader.growth_bytes == LIMIT


def test_a_large_frame_takes_nothing_until_it_is_allowed() -> None:
    body = bytes(range(256)) * 400
    reader = FrameReader(LIMIT, trusts_sizes=True)
    give(reader, frame(body)[:4096])
    assert reader.next_frame() is None
    assert reader.growth_bytes == len(body)
    reader.grow()
    assert reader.growth_bytes == 0
    assert len(reader.buffer()) == len(body) - 4092
    give(reader, body[4092:])
    assert reader.next_frame() == body
    give(reader, frame(b"next"))
    assert reader.next_frame() == b"next"


def test_room_for_a_large_frame_is_exactly_its_own_so_the_next_frame_stays_outside() -> None:
    reader = FrameReader(LIMIT)
    body = bytes(SMALL_BYTES)
    assert receive(reader, frame(body)[:SMALL_BYTES]) is None
    assert len(reader.buffer()) == 4
    give(reader, bytes(4))
    assert reader.next_frame() == body


def test_a_frame_of_the_buffer_s_size_is_small_and_one_more_byte_is_large() -> None:
    reader = FrameReader(LIMIT)
    give(reader, frame(bytes(SMALL_BYTES - 4))[:-1])
    assert reader.next_frame() is None
    assert reader.growth_bytes == 0
    give(reader, b"\x00")
    assert len(reader.next_frame() or b"") == SMALL_BYTES - 4
    give(reader, frame(bytes(SMALL_BYTES - 3))[:SMALL_BYTES])
    assert reader.next_frame() is None
    assert reader.growth_bytes == SMALL_BYTES - 3


def test_an_incomplete_small_frame_moves_to_the_front_when_the_buffer_is_full() -> None:
    reader = FrameReader(LIMIT)
    first, second = frame(bytes(SMALL_BYTES - 10)), frame(b"a frame that does not fit")
    give(reader, first + second[: SMALL_BYTES - len(first)])
    assert len(reader.next_frame() or b"") == SMALL_BYTES - 10
    assert reader.next_frame() is None
    rest = second[SMALL_BYTES - len(first) :]
    give(reader, rest)
    assert reader.next_frame() == b"a frame that does not fit"


def test_a_frame_stays_as_it_was_while_more_is_received() -> None:
    reader = FrameReader(LIMIT)
    give(reader, frame(b"kept"))
    kept = reader.next_frame()
    give(reader, frame(b"lost"))
    assert kept == b"kept"


def test_a_connection_without_traffic_holds_little_memory_and_one_with_much_gets_more_room() -> None:
    reader = FrameReader(LIMIT)
    assert len(reader.buffer()) == 4096
    give(reader, frame(bytes(3000)) + frame(bytes(3000)))
    assert len(reader.buffer()) == SMALL_BYTES - 2 * 3004
    assert [len(reader.next_frame() or b"") for _ in range(2)] == [3000, 3000]


def test_it_says_when_it_has_no_more_room_and_when_there_is_no_frame_to_look_for() -> None:
    body = bytes(2 * SMALL_BYTES)
    reader = FrameReader(LIMIT, trusts_sizes=True)

    def is_worth_a_look(data: bytes) -> bool:
        room = reader.buffer()
        room[: len(data)] = data
        return reader.received(len(data))

    assert is_worth_a_look(frame(body)[:100])
    assert not reader.is_full
    give(reader, frame(body)[100:SMALL_BYTES])
    assert reader.is_full
    while reader.next_frame() is None and reader.growth_bytes:
        reader.grow()
    assert not reader.is_full
    assert not is_worth_a_look(frame(body)[SMALL_BYTES:-1]), "a large one is being received"
    assert not reader.is_full
    give(reader, frame(body)[-1:])
    assert reader.is_full
    assert reader.next_frame() == body
