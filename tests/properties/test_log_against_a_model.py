"""A log behaves like a list of batches, whatever its segments and indexes are cut into."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from strandline.partition.producers import Producers
from strandline.storage import retention
from strandline.wire.record_batch import Record, headers_in, read_header, records_in
from tests.batches import NOW_MS, batch
from tests.unit.storage.logs import Store, append, read

from .effort import effort

EACH = len(batch(2))


class LogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._home = tempfile.TemporaryDirectory(prefix="strandline-model-")

    def teardown(self) -> None:
        self.store.files.close()
        self._home.cleanup()

    @initialize(
        segment_bytes=st.integers(EACH, 6 * EACH),
        interval=st.sampled_from((0, EACH, 3 * EACH, 4096)),
        segment_ms=st.sampled_from((50, 10**9)),
        index_bytes=st.sampled_from((40, 10_000)),
    )
    def begin(self, segment_bytes: int, interval: int, segment_ms: int, index_bytes: int) -> None:
        self.store = Store(
            Path(self._home.name) / "t-0",
            segment_bytes=segment_bytes,
            index_interval_bytes=interval,
            segment_ms=segment_ms,
            segment_index_bytes=index_bytes,
        )
        self.log = self.store.open()
        self.batches: list[list[Record]] = []
        self.start = 0
        self.epoch = 0
        self.sequences: dict[int, int] = {}

    @property
    def end(self) -> int:
        return self.batches[-1][-1].offset + 1 if self.batches else self.empty_end

    empty_end = 0

    @rule(
        count=st.integers(1, 3),
        drift=st.integers(-100, 300),
        producer=st.sampled_from((-1, 5, 6)),
        new_epoch=st.booleans(),
    )
    def append(self, count: int, drift: int, producer: int, new_epoch: bool) -> None:
        self.epoch += new_epoch
        sequence = self.sequences.get(producer, 0) if producer >= 0 else -1
        data = batch(
            count,
            size=4,
            timestamp=NOW_MS + drift + 20 * len(self.batches),
            producer_id=producer,
            epoch=0 if producer >= 0 else -1,
            sequence=sequence,
        )
        if len(data) > self.store.config.segment_bytes:
            return
        self.sequences[producer] = sequence + count
        offset = append(self.log, data, epoch=self.epoch)
        assert offset == self.end
        self.batches.append([record._replace(offset=offset + record.offset) for record in records_in(data)])

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW_MS)

    @rule(clean=st.booleans(), share=st.integers(0, 4))
    def reopen(self, clean: bool, share: int) -> None:
        """After a clean end, or after a crash with some of the log flushed."""
        producers = self.log.producers.entries()
        epochs = [self.log.epochs.epoch_at(offset) for offset in range(self.start, self.end)]
        if clean:
            self.log.close()
        point = self.log.log_end_offset * share // 4
        self.log = self.store.open(clean=clean, recovery_point=point, start_offset=self.start)
        assert self.store.notes == ()
        assert sorted(self.log.producers.entries()) == sorted(producers)
        assert [self.log.epochs.epoch_at(offset) for offset in range(self.start, self.end)] == epochs

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        self.start = data.draw(st.integers(self.start, self.end))
        self.log.advance_start(self.start)
        count = retention.below_start(self.log.segments, self.start)
        self.log.drop_segments(self.log.segments[:count])

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(max(self.start, self.log.segments[0].base_offset), self.end))
        self.log.truncate_to(offset)
        self.empty_end = self.batches[0][0].offset
        while self.batches and self.batches[-1][-1].offset >= offset:
            self.empty_end = self.batches.pop()[0].offset
        self.start = min(self.start, self.end)
        # The caller that truncates also rebuilds the producers; here a restart does it.
        self.log = self.store.open(start_offset=self.start)
        assert isinstance(self.log.producers, Producers)
        self.sequences = {e.producer_id: e.last_sequence + 1 for e in self.log.producers.entries()}

    @invariant()
    def offsets_agree(self) -> None:
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, self.end)

    @precondition(lambda self: self.start < self.end)
    @rule(data=st.data(), size=st.integers(0, 8 * EACH))
    def read_anywhere(self, data: st.DataObject, size: int) -> None:
        offset = data.draw(st.integers(self.start, self.end - 1))
        got = read(self.log, offset, size)
        first = read_header(got)
        held = next(b for b in self.batches if b[-1].offset >= offset)
        assert first.base_offset == held[0].offset
        assert len(got) <= max(size, first.size)
        for position, header in headers_in(got):
            whole = next(b for b in self.batches if b[0].offset == header.base_offset)
            assert records_in(got[position : position + header.size]) == whole

    @rule(drift=st.integers(-200, 800))
    def find_by_time(self, drift: int) -> None:
        readable = [r for b in self.batches for r in b if r.offset >= self.start]
        wanted = NOW_MS + drift
        expected = next(((r.timestamp, r.offset) for r in readable if r.timestamp >= wanted), None)
        assert self.log.offset_by_time(wanted, self.start) == expected

    @rule()
    def find_largest_time(self) -> None:
        readable = [r for b in self.batches for r in b if r.offset >= self.start]
        largest = max((r.timestamp for r in readable), default=None)
        found = self.log.offset_of_largest_timestamp()
        assert (None if found is None else found[0]) == largest

    @invariant()
    def indexes_are_sane(self) -> None:
        for segment in self.log.segments:
            for suffix, size in ((".index", 8), (".timeindex", 12)):
                data = self.store.file(segment.base_offset, suffix).read_bytes()
                fields = [data[at : at + size] for at in range(0, len(data), size)]
                assert len(data) % size == 0
                assert fields == sorted(set(fields)), "entries ascend"


LogMachine.TestCase.settings = effort(25)
TestLogAgainstAModel = LogMachine.TestCase
