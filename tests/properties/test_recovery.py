"""A log cut or damaged at any byte comes back with every whole batch before the damage, and nothing torn."""

from __future__ import annotations

import shutil
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from strandline.partition.producers import Producers
from strandline.storage.log import Log
from strandline.wire.record_batch import read_header
from tests.batches import NOW_MS, batch, header
from tests.properties.damage import UNCHECKED
from tests.unit.storage.logs import Store, append, contents

from .effort import IS_SOAK, effort

COUNT = 6


def sample(number: int) -> bytes:
    return batch(
        1 + number % 3,
        size=5 + 7 * number,
        timestamp=NOW_MS + 10 * number,
        producer_id=3 + number % 2,
        epoch=0,
        sequence=10 * number,
    )


def written(home: Path) -> tuple[Store, list[tuple[int, int]]]:
    """Returns a log of two segments; the position of each batch of the second, and the offset after it."""
    store = Store(home, segment_bytes=2 * len(sample(COUNT)), index_interval_bytes=100)
    log = store.open()
    for number in range(COUNT):
        append(log, sample(number))
    log.roll(NOW_MS)
    store.config = Store(home).config
    log.config = store.config
    ends = []
    for number in range(COUNT):
        append(log, sample(number), epoch=1 + number // 3)
        ends.append((log.active.size, log.log_end_offset))
    store.files.close()
    return store, ends


def check(store: Store, log: Log, whole: int, first: int) -> None:
    """Exactly the first `whole` batches of the second segment are there, and everything that follows from them."""
    expected = contents_of(first, whole)
    assert contents(log)[-len(expected) or None :] == expected if expected else log.log_end_offset == first
    assert log.log_end_offset == (expected[-1][1] + 1 if expected else first)
    assert log.producers.entries() == replayed(log).entries()
    assert all(start < max(log.log_end_offset, 1) for _, start in log.epochs.entries)
    assert log.active.offset_index.contents() == fresh_index(log)
    # The log goes on where it ends.
    offset = append(log, batch(2), epoch=8)
    assert contents(log)[-1] == (offset, offset + 1)


def contents_of(first: int, whole: int) -> list[tuple[int, int]]:
    found = []
    for number in range(whole):
        last = first + header(sample(number)).last_offset_delta
        found.append((first, last))
        first = last + 1
    return found


def replayed(log: Log) -> Producers:
    producers = Producers()
    for segment in log.segments:
        for _, found in segment.headers():
            if found.producer_id >= 0:
                producers.replay(found, None)
    return producers


def fresh_index(log: Log) -> bytes:
    """Returns the entries that appending the batches of the active segment makes."""
    entries, since = b"", 0
    for position, found in log.active.headers():
        if since > log.config.index_interval_bytes:
            entries += (found.last_offset - log.active.base_offset).to_bytes(4, "big") + position.to_bytes(
                4, "big"
            )
            since = 0
        since += found.size
    return entries


def copied(store: Store, to: Path) -> Store:
    shutil.copytree(store.path, to)
    copy = Store(to)
    copy.config = store.config
    return copy


def test_log_cut_at_every_byte_keeps_every_whole_batch(tmp_path: Path) -> None:
    store, ends = written(tmp_path / "t-0")
    first = store.names(".log")[-1]
    size = ends[-1][0]
    step = 1 if IS_SOAK else 5
    for cut in sorted({*range(0, size + 1, step), *(e for e, _ in ends), *(e - 1 for e, _ in ends), size}):
        copy = copied(store, tmp_path / f"cut-{cut}")
        data = copy.file(first).read_bytes()
        copy.file(first).write_bytes(data[:cut])
        log = copy.open()
        check(copy, log, sum(1 for end, _ in ends if end <= cut), first)
        copy.files.close()
        shutil.rmtree(copy.path)


def test_any_damaged_byte_cuts_the_log_before_its_batch(tmp_path: Path) -> None:
    store, ends = written(tmp_path / "t-0")
    first = store.names(".log")[-1]
    numbers = iter(range(10**9))

    @effort(60)
    @given(st.integers(0, ends[-1][0] - 1), st.integers(1, 255))
    def damage(position: int, flip: int) -> None:
        begins = [0, *(end for end, _ in ends)]
        number = max(n for n, begin in enumerate(begins) if begin <= position)
        if position - begins[number] in UNCHECKED:
            return
        copy = copied(store, tmp_path / f"damage-{next(numbers)}")
        data = bytearray(copy.file(first).read_bytes())
        data[position] ^= flip
        copy.file(first).write_bytes(bytes(data))
        log = copy.open()
        check(copy, log, number, first)
        copy.files.close()
        shutil.rmtree(copy.path)

    damage()


def test_damage_that_the_checksum_cannot_see_never_breaks_a_start(tmp_path: Path) -> None:
    store, ends = written(tmp_path / "t-0")
    first = store.names(".log")[-1]
    begins = [0, *(end for end, _ in ends)][:-1]
    for begin in begins:
        for position in sorted(UNCHECKED):
            copy = copied(store, tmp_path / f"unseen-{begin}-{position}")
            data = bytearray(copy.file(first).read_bytes())
            data[begin + position] ^= 0x41
            copy.file(first).write_bytes(bytes(data))
            log = copy.open()
            offset = append(log, batch(1), epoch=9)
            assert offset >= first
            region = log.read(offset, log.log_end_offset, 1000, whole_first_batch=True)
            assert region is not None
            assert read_header(region.file.read_at(region.position, region.size)).base_offset == offset
            copy.files.close()
            shutil.rmtree(copy.path)
