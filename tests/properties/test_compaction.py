"""Compaction changes nothing that a reader of committed records can tell, whatever was written and however often.

A reader that begins at 0 ends with the newest committed value of every key, before and after; no record changes its
offset, its timestamp or its place; nobody sees what was aborted.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from strandline.partition.producers import Producers
from strandline.wire.record_batch import Record, read_header, records_in
from strandline.wire.records.markers import read_marker
from tests.batches import NOW_MS
from tests.unit.storage.cleaning import batches_of, clean, end_transaction, newest, write
from tests.unit.storage.logs import Store

from .effort import effort

PRODUCERS = (5, 6)
keys = st.sampled_from([b"a", b"b", b"c", b"d"])
contents = st.lists(st.tuples(keys, st.one_of(st.none(), st.binary(max_size=8))), min_size=1, max_size=4)


class CompactionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._home = tempfile.TemporaryDirectory(prefix="strandline-compaction-")

    def teardown(self) -> None:
        self.store.files.close()
        self._home.cleanup()

    @initialize(
        segment_bytes=st.sampled_from((300, 1000, 100_000)),
        retention_ms=st.sampled_from((0, 30)),
        interval=st.sampled_from((0, 200)),
    )
    def begin(self, segment_bytes: int, retention_ms: int, interval: int) -> None:
        self.store = Store(
            Path(self._home.name) / "t-0",
            cleanup_policy="compact",
            segment_bytes=segment_bytes,
            delete_retention_ms=retention_ms,
            index_interval_bytes=interval,
        )
        self.log = self.store.open()
        self.now_ms = NOW_MS
        self.written: dict[int, Record] = {}  # what a reader may see: committed, and not of a transaction
        self.open: dict[int, list[Record]] = {}
        self.first_open: dict[int, int] = {}
        self.sequences = dict.fromkeys(PRODUCERS, 0)
        self.cleaned_to: int | None = None

    @property
    def producers(self) -> Producers:
        assert isinstance(self.log.producers, Producers)
        return self.log.producers

    @rule(contents=contents, codec=st.sampled_from((0, 0, 1, 4)))
    def write(self, contents: list[tuple[bytes, bytes | None]], codec: int) -> None:
        base = write(self.log, *contents, codec=codec, timestamp=self.now_ms)
        for number, (key, value) in enumerate(contents):
            self.written[base + number] = Record(base + number, self.now_ms, key, value)

    @rule(contents=contents, producer=st.sampled_from(PRODUCERS))
    def write_in_transaction(self, contents: list[tuple[bytes, bytes | None]], producer: int) -> None:
        identity = (producer, 0, self.sequences[producer])
        base = write(self.log, *contents, timestamp=self.now_ms, producer=identity, is_transactional=True)
        self.sequences[producer] += len(contents)
        self.first_open.setdefault(producer, base)
        self.open.setdefault(producer, []).extend(
            Record(base + number, self.now_ms, key, value) for number, (key, value) in enumerate(contents)
        )

    @precondition(lambda self: self.open)
    @rule(commit=st.booleans(), last=st.booleans())
    def end(self, commit: bool, last: bool) -> None:
        producer = list(self.open)[-1 if last else 0]
        end_transaction(self.log, producer, 0, commit=commit, now_ms=self.now_ms)
        records = self.open.pop(producer)
        del self.first_open[producer]
        if commit:
            self.written |= {record.offset: record for record in records}

    @rule()
    def roll(self) -> None:
        self.log.roll(self.now_ms)

    @rule(milliseconds=st.integers(1, 50))
    def time_passes(self, milliseconds: int) -> None:
        self.now_ms += milliseconds

    @rule()
    def forget_producers(self) -> None:
        self.producers.expire(self.now_ms - 20)

    @rule(memory=st.sampled_from((350, 1 << 20)), is_first=st.booleans())
    def compact(self, memory: int, is_first: bool) -> None:
        stable = min(self.first_open.values(), default=self.log.log_end_offset)
        if len(self.log.segments) == 1 or stable <= self.log.segments[0].base_offset:
            return
        if self.log.segments[1].base_offset > stable:
            return
        finished = clean(
            self.store,
            self.log,
            now_ms=self.now_ms,
            cleaned_to=None if is_first else self.cleaned_to,
            last_stable_offset=stable,
            key_bytes_max=memory,
        )
        if finished.cleaned_to:
            self.cleaned_to = finished.cleaned_to

    @rule()
    def reopen(self) -> None:
        entries = sorted(self.producers.entries())
        self.log.close()
        self.log = self.store.open(clean=True)
        assert self.store.notes == ()
        assert sorted(self.producers.entries()) == entries

    @invariant()
    def a_reader_of_committed_records_ends_with_the_newest_values(self) -> None:
        stable = min(self.first_open.values(), default=self.log.log_end_offset)
        seen = self._read_committed(stable)
        assert [record.offset for record in seen] == sorted({record.offset for record in seen})
        assert all(self.written[record.offset] == record for record in seen)
        visible = [record for _, record in sorted(self.written.items()) if record.offset < stable]
        assert newest(seen) == newest(visible)

    def _read_committed(self, stable: int) -> list[Record]:
        """As a client does it: by the index of aborted transactions and the markers in the log."""
        rows = [row for segment in self.log.segments for row in segment.transaction_index.rows()]
        rows.sort(key=lambda row: row.first_offset)
        aborting: set[int] = set()
        seen: list[Record] = []
        for data in batches_of(self.log):
            header = read_header(data)
            if header.base_offset >= stable:
                break
            while rows and rows[0].first_offset <= header.last_offset:
                aborting.add(rows.pop(0).producer_id)
            if header.is_control:
                marker = read_marker(data)
                if marker is not None and not marker.is_commit:
                    aborting.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborting):
                seen += records_in(data)
        return seen


CompactionMachine.TestCase.settings = effort(40)
TestCompaction = CompactionMachine.TestCase
