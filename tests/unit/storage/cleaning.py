"""Drives a cleaning as the broker does, on one log, without a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from strandline.partition.producers import Producers
from strandline.storage.compaction.cleaning import CleanedSegments, CleaningFinished, compact
from strandline.storage.compaction.planning import extent_of, plan_of
from strandline.storage.log import Log
from strandline.wire.record_batch import TRANSACTIONAL_FLAG, Record, read_header, records_in
from strandline.wire.records.markers import Marker, marker_batch
from tests.batches import NOW_MS
from tests.unit.storage.logs import Store, append

MEMORY = 1 << 20


def clean(
    store: Store,
    log: Log,
    *,
    now_ms: int = NOW_MS,
    cleaned_to: int | None = None,
    last_stable_offset: int | None = None,
    key_bytes_max: int = MEMORY,
    read_bytes: int = 4096,
    before_swap: Callable[[], None] = lambda: None,
) -> CleaningFinished:
    """Cleans what can be cleaned, whether it is worth it or not."""
    stable = log.log_end_offset if last_stable_offset is None else last_stable_offset
    log.flushed(log.log_end_offset)
    extent = extent_of(log, cleaned_to, stable, now_ms)
    plan = plan_of(log, extent, now_ms=now_ms, key_bytes_max=key_bytes_max, read_bytes=read_bytes)
    for done in compact(store.disk, plan):
        if isinstance(done, CleanedSegments):
            before_swap()
            log.replace_segments(done.bases, done.size)
        elif isinstance(done, CleaningFinished):
            return done
    raise AssertionError("a cleaning ends with CleaningFinished")


def pairs(*keys_and_values: tuple[bytes, bytes | None], timestamp: int = NOW_MS) -> list[Record]:
    return [Record(n, timestamp, key, value) for n, (key, value) in enumerate(keys_and_values)]


def write(
    log: Log,
    *keys_and_values: tuple[bytes, bytes | None],
    codec: int = 0,
    timestamp: int = NOW_MS,
    producer: tuple[int, int, int] | None = None,
    is_transactional: bool = False,
) -> int:
    """Appends one batch; `producer` is its id, epoch and sequence. The base offset it got."""
    from strandline.wire.record_batch import build_batch

    producer_id, epoch, sequence = producer or (-1, -1, -1)
    data = build_batch(
        pairs(*keys_and_values, timestamp=timestamp),
        attributes=codec | (TRANSACTIONAL_FLAG if is_transactional else 0),
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    return append(log, data)


def end_transaction(log: Log, producer_id: int, epoch: int, *, commit: bool, now_ms: int = NOW_MS) -> int:
    """Appends a marker, with what the transaction index has to say of it."""
    marker = Marker(commit, 0)
    data, header = marker_batch(producer_id, epoch, marker, now_ms)
    producers, offset = log.producers, log.log_end_offset
    assert isinstance(producers, Producers)
    aborted = producers.aborted_by(producer_id, marker, offset)
    log.append(memoryview(data), header, offset, 0, now_ms, aborted)
    producers.ended(header, marker, offset)
    return offset


def batches_of(log: Log) -> list[bytes]:
    return [segment.read_batch(place) for segment in log.segments for place in segment.walk()]


def records_of(log: Log) -> list[Record]:
    """Every record of every data batch, in order."""
    return [
        record for data in batches_of(log) if not read_header(data).is_control for record in records_in(data)
    ]


def kept(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in records_of(log)]


def newest(records: Sequence[Record]) -> dict[bytes | None, bytes | None]:
    """Returns the newest value of each key, as a reader of the whole log has it; tombstones leave none."""
    state: dict[bytes | None, bytes | None] = {}
    for record in records:
        if record.value is None:
            state.pop(record.key, None)
        else:
            state[record.key] = record.value
    return state
