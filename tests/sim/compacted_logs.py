"""One log on a simulated disk that is appended to, rolled, flushed, compacted and deleted from, and crashes at any
operation of the disk: after every crash a reader sees what it must.

What must hold, whatever happened:
1. Every record that the log has is one that was written, at the offset it was written at, in order.
2. A reader of all of it ends up with the newest value of every key among what the log has kept of the history.
3. Nothing below the last checkpointed recovery point is lost.
4. The last sequence that is known of a producer is that of its last batch.
"""

from __future__ import annotations

from strandline.base.ids import TopicPartition
from strandline.partition.producers import Producers
from strandline.sim.disk import SimulatedDisk
from strandline.sim.engine.disk_faults import DiskFaults
from strandline.sim.engine.page_cache import PageCache
from strandline.sim.engine.process_life import NodeHalted, ProcessLife
from strandline.sim.engine.trace import Trace
from strandline.sim.random import generator
from strandline.storage import retention
from strandline.storage.compaction.cleaning import CleanedSegments, CleaningFinished, compact
from strandline.storage.compaction.planning import extent_of, plan_of
from strandline.storage.files import FileTable
from strandline.storage.log import Log
from strandline.storage.log_loader import LoadRequest, load_log
from strandline.wire.record_batch import Record, build_batch, read_header, records_in
from tests.batches import NOW_MS
from tests.unit.storage.logs import append, topic_config

DIRECTORY = "/data/t-0"
KEYS = 6
STEPS = 30


class CompactedLog:
    def __init__(self, seed: int) -> None:
        self._chance = generator(seed, "history")
        self._seed = seed
        self._lives = 0
        self.volume = PageCache(generator(seed, "volume"))
        self.faults = DiskFaults()
        self.config = topic_config(
            cleanup_policy="compact",
            segment_bytes=self._chance.choice((200, 400, 2000)),
            index_interval_bytes=self._chance.choice((0, 100, 4096)),
            delete_retention_ms=self._chance.choice((0, 50)),
        )
        self.written: list[Record] = []
        self.recovery_point = 0
        self.start = 0
        self.cleaned_to: int | None = None
        self.now_ms = NOW_MS
        self.sequences: dict[int, int] = {}
        self.last_sequences: list[
            tuple[int, int, int]
        ] = []  # last offset, producer, last sequence of batches
        self.crashes = self.cleanings = 0
        self._boot()
        self.disk.make_directory(DIRECTORY)
        self.disk.sync_directory("/data")
        self.disk.sync_directory("/")
        self._open()

    def _boot(self) -> None:
        self._lives += 1
        self._life = ProcessLife(f"life {self._lives}")
        chance = generator(self._seed, "disk", self._lives)
        self.disk = SimulatedDisk(self.volume, self._life, self.faults, chance, Trace())

    def _open(self) -> None:
        self.files = FileTable(self.disk, 20)
        opening = LoadRequest(
            directory=DIRECTORY,
            is_clean=False,
            recovery_point=self.recovery_point,
            start_offset=self.start,
            index_interval_bytes=self.config.index_interval_bytes,
            new_producers=Producers,
            gaps_below=self.recovery_point,
        )
        opened = load_log(self.disk, opening)
        partition = TopicPartition("t", 0)
        self.log = Log(
            self.disk, self.files, DIRECTORY, partition, self.config, opened, self.recovery_point, NOW_MS
        )

    def run(self) -> None:
        for _ in range(STEPS):
            crashes = self._chance.random() < 0.25
            if crashes:
                self.faults.kill_amid_operation(self._chance.randrange(self._chance.choice((5, 20, 80))))
            try:
                self._step()
            except NodeHalted:
                self._crash()
            self.faults.heal()
            self.now_ms += self._chance.randrange(40)
        self._crash()

    def _step(self) -> None:
        act = self._chance.random()
        if act < 0.55:
            self._append()
        elif act < 0.65:
            self.log.roll(self.now_ms)
        elif act < 0.75:
            self._flush()
        elif act < 0.95:
            self._clean()
        else:
            self._delete()

    def _append(self) -> None:
        chance = self._chance
        producer = chance.choice((-1, 7, 8))
        sequence = self.sequences.get(producer, 0) if producer >= 0 else -1
        count = chance.randrange(1, 4)
        base = self.log.log_end_offset
        records = [
            Record(
                number,
                self.now_ms,
                b"k%d" % chance.randrange(KEYS),
                None if chance.random() < 0.15 else b"%d" % (base + number),
            )
            for number in range(count)
        ]
        data = build_batch(
            records,
            attributes=chance.choice((0, 0, 1)),
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            base_sequence=sequence,
        )
        # It may survive a crash amid the append, or not.
        self.written += [record._replace(offset=base + record.offset) for record in records]
        append(self.log, data, now_ms=self.now_ms)
        if producer >= 0:
            self.sequences[producer] = sequence + count
            self.last_sequences.append((base + count - 1, producer, sequence + count - 1))

    def _flush(self) -> None:
        work = self.log.flush_work()
        work.run(self.disk)
        self.log.flushed(work.end_offset)
        self.recovery_point = self.log.recovery_point  # as its checkpoint says, which is written in one step

    def _clean(self) -> None:
        self._flush()
        extent = extent_of(self.log, self.cleaned_to, self.log.log_end_offset, self.now_ms)
        if not extent.dirty_bytes:
            return
        memory = self._chance.choice((400, 1 << 20))
        plan = plan_of(self.log, extent, now_ms=self.now_ms, key_bytes_max=memory, read_bytes=256)
        for done in compact(self.disk, plan):
            if isinstance(done, CleanedSegments):
                if self._chance.random() < 0.3:
                    self.faults.kill_amid_operation(self._chance.randrange(16))
                for path in self.log.replace_segments(done.bases, done.size):
                    if self._chance.random() < 0.5:
                        self.disk.remove(path)  # otherwise it waits for its delay, which a crash ends
                self.disk.sync_directory(DIRECTORY)
            elif isinstance(done, CleaningFinished):
                self.cleaned_to = done.cleaned_to
                self.cleanings += 1

    def _delete(self) -> None:
        """Deletes records from the beginning, as DeleteRecords does; the log start's checkpoint is written before."""
        self.start = self._chance.randrange(self.start, self.recovery_point + 1) if self.recovery_point else 0
        self.start = max(self.start, self.log.log_start_offset)
        self.log.advance_start(self.start)
        count = retention.below_start(self.log.segments, self.start)
        for path in self.log.drop_segments(self.log.segments[:count]):
            self.disk.remove(path)

    def _crash(self) -> None:
        self.crashes += 1
        power_cut = self._chance.random() < 0.6
        self._life.end("crash", power_cut=power_cut)
        self.faults.heal()
        self.volume.crash(power_cut=power_cut)
        self._boot()
        self._open()
        self.check()

    def check(self) -> None:
        log = self.log
        assert log.log_end_offset >= self.recovery_point, "what was flushed is lost"
        self.written = [record for record in self.written if record.offset < log.log_end_offset]
        self.last_sequences = [entry for entry in self.last_sequences if entry[0] < log.log_end_offset]
        known = {entry.producer_id: entry.last_sequence for entry in log.producers.entries()}
        newest = {producer: (offset, sequence) for offset, producer, sequence in self.last_sequences}
        for producer, (offset, sequence) in newest.items():
            if offset >= log.log_start_offset:
                assert known.get(producer, -1) >= sequence, "a producer's last sequence is lost"
        self.sequences = {producer: sequence + 1 for producer, sequence in known.items()}
        by_offset = {record.offset: record for record in self.written}
        read = self._read()
        offsets = [record.offset for record in read]
        assert offsets == sorted(set(offsets)), "order"
        assert all(by_offset[record.offset] == record for record in read), "a record has changed"
        readable = [record for record in self.written if record.offset >= log.log_start_offset]
        assert _newest(read) == _newest(readable), "a key lost its newest value"
        for segment in log.segments:
            for data in (segment.offset_index.contents(), segment.time_index.contents()):
                assert len(data) % 4 == 0

    def _read(self) -> list[Record]:
        """Reads the log from its start on, as a consumer does."""
        found: list[Record] = []
        offset, log = self.log.log_start_offset, self.log
        while offset < log.log_end_offset:
            region = log.read(offset, log.log_end_offset, 1 << 20, whole_first_batch=True)
            if region is None:
                break
            data = region.file.read_at(region.position, region.size)
            position = 0
            while position < len(data):
                header = read_header(data, position)
                batch = data[position : position + header.size]
                found += [record for record in records_in(batch) if record.offset >= offset]
                position += header.size
                offset = header.next_offset
        return found


def _newest(records: list[Record]) -> dict[bytes | None, bytes | None]:
    state: dict[bytes | None, bytes | None] = {}
    for record in records:
        if record.value is None:
            state.pop(record.key, None)
        else:
            state[record.key] = record.value
    return state


def run_histories(first: int, count: int) -> tuple[int, int]:
    """Runs some histories; returns how many crashes and cleanings there were. The first that goes wrong names its
    seed."""
    crashes = cleanings = 0
    for seed in range(first, first + count):
        history = CompactedLog(seed)
        try:
            history.run()
        except AssertionError as error:
            raise AssertionError(f"history {seed}: {error}") from error
        crashes += history.crashes
        cleanings += history.cleanings
    return crashes, cleanings
