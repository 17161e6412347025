"""The two maps of keys judge alike: the dict of plain Python and the compiled table."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.storage.compaction.compiled import CompiledKeyMap
from strandline.storage.compaction.keys import KEY_BYTES_MAX, DictKeyMap, KeyMap
from strandline.wire.record_batch import (
    CorruptBatch,
    Record,
    encode_record,
)
from tests.batches import NOW_MS
from tests.properties.effort import effort

MEMORY = 1 << 20
MAPS: list[Callable[[int], KeyMap]] = [DictKeyMap, lambda memory: CompiledKeyMap(memory, 2**63 + 5)]

keys = st.one_of(st.none(), st.binary(max_size=3), st.sampled_from([b"", b"k" * 64, b"k" * 65, b"k" * 200]))
values = st.one_of(st.none(), st.binary(max_size=200))
batches = st.lists(
    st.tuples(st.integers(0, 5), st.integers(-(1 << 40), 1 << 40), keys, values), min_size=1, max_size=12
)


def body_of(contents: list[tuple[int, int, bytes | None, bytes | None]]) -> tuple[bytes, int]:
    """Returns a batch's body with gaps between its offsets, and how many offsets it spans."""
    parts, delta = [], -1
    for gap, timestamp, key, value in contents:
        delta += 1 + gap
        parts.append(encode_record(delta, timestamp, key, value, ((b"h", None),) if gap == 3 else ()))
    return b"".join(parts), delta + 1


@effort(150)
@given(st.lists(batches, min_size=1, max_size=6), st.integers(0, 20), st.booleans(), st.integers(0, 3))
def test_both_maps_keep_the_same_records(
    history: list[list[tuple[int, int, bytes | None, bytes | None]]],
    from_offset: int,
    keeps_tombstones: bool,
    short: int,
) -> None:
    bodies, offset = [], 0
    for contents in history:
        body, span = body_of(contents)
        bodies.append((body, len(contents), offset))
        offset += span
    maps = [new(MEMORY) for new in MAPS]
    for key_map in maps:
        for body, count, base in bodies:
            assert key_map.note(body, count, base, from_offset)
        key_map.latest_offset = offset - 1 - short
    assert len(maps[0]) == len(maps[1])
    for body, count, base in bodies:
        plain, compiled = (each.judge(body, count, base, keeps_tombstones=keeps_tombstones) for each in maps)
        assert plain[:3] == compiled[:3]
        if 0 < plain.records < count:
            assert plain.max_timestamp_delta == compiled.max_timestamp_delta


@pytest.mark.parametrize("new", MAPS, ids=["dict", "compiled"])
def test_a_full_map_takes_no_more_and_forgets_nothing(new: Callable[[int], KeyMap]) -> None:
    key_map = new(1 << 20)
    taken = 0
    while key_map.note(*_one_batch(taken), 0) and taken < 100_000:
        taken += 100
    assert 1000 < taken < 100_000
    key_map.latest_offset = taken - 1
    body, count, _ = _one_batch(taken - 100)
    assert key_map.judge(body, count, taken - 100, keeps_tombstones=True).records == count
    assert key_map.judge(body, count, 0, keeps_tombstones=True).records == 0


def _one_batch(first: int) -> tuple[bytes, int, int]:
    return b"".join(encode_record(n, 0, b"key-%d" % (first + n), b"v") for n in range(100)), 100, first


@pytest.mark.parametrize("new", MAPS, ids=["dict", "compiled"])
def test_records_that_cannot_be_read_are_damage_and_no_crash(new: Callable[[int], KeyMap]) -> None:
    record = Record(0, NOW_MS, b"key", b"value")
    body = encode_record(0, 0, record.key, record.value)
    key_map = new(MEMORY)
    key_map.latest_offset = 10
    for damaged in (body[:-1], body + b"\x00", b"\xff" * 12, b"", body[:1]):
        with pytest.raises(CorruptBatch):
            key_map.note(damaged, 1, 0, 0)
        with pytest.raises(CorruptBatch):
            key_map.judge(damaged, 1, 0, keeps_tombstones=True)


@effort(200)
@given(st.binary(max_size=60), st.integers(1, 5))
def test_any_bytes_are_read_or_refused_by_both(data: bytes, count: int) -> None:
    for new in MAPS:
        key_map = new(MEMORY)
        key_map.latest_offset = 100
        for act in (
            lambda m=key_map: m.note(data, count, 0, 0),
            lambda m=key_map: m.judge(data, count, 0, keeps_tombstones=False),
        ):
            try:
                act()
            except CorruptBatch:
                continue


def test_long_keys_are_told_apart() -> None:
    for new in MAPS:
        key_map = new(MEMORY)
        alike = [b"x" * KEY_BYTES_MAX + tail for tail in (b"a", b"b")]
        body = b"".join(encode_record(n, 0, key, b"v") for n, key in enumerate(alike))
        assert key_map.note(body, 2, 0, 0)
        key_map.latest_offset = 1
        assert key_map.judge(body, 2, 0, keeps_tombstones=True).records == 2
        assert len(key_map) == 2
