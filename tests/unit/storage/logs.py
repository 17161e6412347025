"""One partition's log on a real disk, opened and reopened."""

from __future__ import annotations

from pathlib import Path

from strandline.base.ids import TopicPartition
from strandline.config import TopicConfig
from strandline.node.disk import RealDisk
from strandline.partition.producers import Producers
from strandline.storage.files import FileTable
from strandline.storage.log import Log
from strandline.storage.log_loader import LoadedLog, LoadRequest, load_log
from strandline.wire.record_batch import headers_in, read_header
from tests.batches import NOW_MS, batch
from tests.disks import QuickDisk
from tests.unit.config.settings import running

PARTITION = TopicPartition("t", 0)
BATCH_BYTES = len(batch(2))


def topic_config(**overrides: object) -> TopicConfig:
    """Returns a topic's settings; a key's dots are written as underscores, `segment_bytes` has no lower bound."""
    named = {name.replace("_", "."): str(value) for name, value in overrides.items()}
    if "segment.bytes" in named:
        named["internal.segment.bytes"] = named.pop("segment.bytes")
    values = running().topic_values(named)
    missing = {name for name in named if name not in values}
    assert not missing, missing
    return TopicConfig(values)


class Store:
    """A partition's directory."""

    def __init__(self, path: Path, disk: RealDisk | None = None, **overrides: object) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.disk = disk or QuickDisk()
        self.files = FileTable(self.disk, 50)
        self.config = topic_config(**overrides)
        self.opened: LoadedLog | None = None

    def open(self, *, clean: bool = False, recovery_point: int = 0, start_offset: int = 0) -> Log:
        self.files.close()
        opening = LoadRequest(
            directory=str(self.path),
            is_clean=clean,
            recovery_point=recovery_point,
            start_offset=start_offset,
            index_interval_bytes=self.config.index_interval_bytes,
            new_producers=Producers,
        )
        self.opened = load_log(self.disk, opening)
        return Log(
            self.disk, self.files, str(self.path), PARTITION, self.config, self.opened, recovery_point, NOW_MS
        )

    @property
    def notes(self) -> tuple[str, ...]:
        assert self.opened is not None
        return self.opened.notes

    def file(self, base_offset: int, suffix: str = ".log") -> Path:
        return self.path / f"{base_offset:020d}{suffix}"

    def names(self, suffix: str) -> list[int]:
        return sorted(int(path.stem) for path in self.path.glob(f"*{suffix}"))


def append(log: Log, data: bytes, *, epoch: int = 0, now_ms: int = NOW_MS) -> int:
    """Appends a batch as a leader does, its producer's state included; the base offset it got."""
    header = read_header(data)
    offset = log.log_end_offset
    log.append(memoryview(data), header, offset, epoch, now_ms)
    if header.producer_id >= 0:
        assert isinstance(log.producers, Producers)
        log.producers.appended(header, offset)
    return offset


def contents(log: Log) -> list[tuple[int, int]]:
    """Base and last offset of every batch that a reader sees, in order."""
    found = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = read(log, offset)
        assert data, f"nothing at offset {offset} of {log.log_end_offset}"
        for _, header in headers_in(data):
            found.append((header.base_offset, header.last_offset))
            offset = header.next_offset
    return found


def read(log: Log, offset: int, size_max: int = 1 << 20, *, whole_first_batch: bool = True) -> bytes:
    region = log.read(offset, log.log_end_offset, size_max, whole_first_batch=whole_first_batch)
    return b"" if region is None else region.file.read_at(region.position, region.size)


def filled(store: Store, count: int = 10, step_ms: int = 1000) -> Log:
    """Returns a log of this many batches of two records, three batches to a leader epoch."""
    log = store.open()
    for number in range(count):
        append(log, batch(2, timestamp=NOW_MS + step_ms * number), epoch=number // 3)
    return log


def two_batches_each(tmp_path: Path, **overrides: object) -> Store:
    """Returns a store whose segments have two batches, four offsets, each."""
    return Store(tmp_path, segment_bytes=2 * BATCH_BYTES, **overrides)
