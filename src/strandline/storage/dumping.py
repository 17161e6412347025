"""The files of a partition as plain values, for people who look at a log without a broker.

Nothing here is repaired or skipped: where a file cannot be read any further, the last row says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from strandline.config.describe import is_sensitive_broker_key
from strandline.config.dynamic import BROKER
from strandline.ports.disk import Disk
from strandline.storage import checkpoints, names
from strandline.storage.files import FileTable
from strandline.storage.indexes import CorruptIndex, OffsetIndex, TimeIndex
from strandline.storage.producer_state import CorruptSnapshot, parse_snapshot
from strandline.storage.transaction_index import TransactionIndex
from strandline.wire import compression
from strandline.wire.compiler import DecodeError
from strandline.wire.record_batch import (
    DELETE_HORIZON_FLAG,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    BatchHeader,
    CorruptBatch,
    Record,
    checksum,
    read_header,
    records_in,
)
from strandline.wire.records.framing import decode_metadata_record
from strandline.wire.records.markers import read_marker
from strandline.wire.records.metadata import ConfigRecord, UserScramCredentialRecord

Row = dict[str, Any]
METADATA_DIRECTORY: Final = "__cluster_metadata-0"
_OFFSET_CHECKPOINTS: Final = (
    names.RECOVERY_POINTS,
    names.HIGH_WATERMARKS,
    names.LOG_STARTS,
    names.CLEANED_OFFSETS,
)


def can_dump(path: str) -> bool:
    return _dumper(path) is not None


def dump_file(disk: Disk, path: str, *, with_records: bool = False) -> Iterator[Row]:
    """Yields the contents of one file, row by row."""
    dumper = _dumper(path)
    assert dumper is not None, f"{path} is not one of a partition's files"
    files = FileTable(disk, 2)
    try:
        if path.endswith(names.LOG):
            yield from _batches(disk, path, with_records)
        else:
            yield from dumper(disk, files, path)
    except (CorruptIndex, CorruptSnapshot, checkpoints.MalformedCheckpoint) as error:
        yield {"error": str(error)}
    finally:
        files.close()


def _dumper(path: str) -> Callable[[Disk, FileTable, str], Iterator[Row]] | None:
    name = path.rpartition("/")[2]
    if name == names.LEADER_EPOCHS:
        return _epochs
    if name in _OFFSET_CHECKPOINTS:
        return _offsets
    if names.base_offset_of(name) is None:
        return None
    by_suffix = {
        names.LOG: lambda disk, files, path: _batches(disk, path, False),
        names.OFFSET_INDEX: _offset_index,
        names.TIME_INDEX: _time_index,
        names.TRANSACTION_INDEX: _transaction_index,
        names.SNAPSHOT: _snapshot,
    }
    return by_suffix.get(name[name.index(".") :])


def read_batches(disk: Disk, path: str) -> Iterator[tuple[int, BatchHeader, bytes]]:
    """Yields position, header and bytes of each whole batch; raises CorruptBatch, with the position, for one that is
    not."""
    file = disk.open(path)
    try:
        position, size = 0, file.size()
        while position < size:
            head = file.read_at(position, HEADER_BYTES)
            if len(head) < HEADER_BYTES:
                raise CorruptBatch(f"there are {len(head)} bytes at position {position}, too few for a batch")
            header = read_header(head)
            if header.length < HEADER_BYTES - LOG_OVERHEAD_BYTES or position + header.size > size:
                raise CorruptBatch(
                    f"a batch of length {header.length} at position {position} with {size - position} bytes left"
                )
            yield position, header, file.read_at(position, header.size)
            position += header.size
    finally:
        file.close()


def _batches(disk: Disk, path: str, with_records: bool) -> Iterator[Row]:
    try:
        for position, header, batch in read_batches(disk, path):
            row = _batch_row(position, header, batch)
            if with_records and header.is_control:
                marker = read_marker(batch)
                row["marker"] = None if marker is None else "commit" if marker.is_commit else "abort"
            elif with_records:
                try:
                    shown = _without_secrets if METADATA_DIRECTORY in path.split("/") else _record_row
                    row["records"] = [shown(record) for record in records_in(batch)]
                except CorruptBatch as error:
                    row["error"] = str(error)
            yield row
    except CorruptBatch as error:
        yield {"error": str(error)}


def _batch_row(position: int, header: BatchHeader, batch: bytes) -> Row:
    row: Row = {
        "position": position,
        "size": header.size,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records_count": header.record_count,
        "leader_epoch": header.leader_epoch,
        "codec": compression.NAMES[header.codec] if header.codec < len(compression.NAMES) else header.codec,
        "max_timestamp": header.max_timestamp,
        "timestamp_type": "LogAppendTime" if header.uses_log_append_time else "CreateTime",
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "is_transactional": header.is_transactional,
        "is_control": header.is_control,
        "is_valid": checksum(memoryview(batch)) == header.crc,
    }
    if header.attributes & DELETE_HORIZON_FLAG:
        row["delete_horizon_ms"] = header.base_timestamp
    return row


def _record_row(record: Record) -> Row:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [[_text(key), _text(value)] for key, value in record.headers],
    }


def _without_secrets(record: Record) -> Row:
    """Returns a record of the metadata log without credentials and passwords, because printed output is passed on."""
    row = _record_row(record)
    try:
        message = decode_metadata_record(record.value or b"")
    except DecodeError:
        return row
    match message:
        case UserScramCredentialRecord():
            row["value"] = (
                f"UserScramCredentialRecord {message.name}, mechanism {message.mechanism}, keys hidden"
            )
        case ConfigRecord() if message.resource_type == BROKER and is_sensitive_broker_key(message.name):
            row["value"] = f"ConfigRecord broker {message.resource_name!r}, {message.name}, value hidden"
        case _:
            pass
    return row


def _text(data: bytes | None) -> str | None:
    """Returns bytes as text: as UTF-8 if they are valid, otherwise with escapes."""
    return None if data is None else data.decode("utf-8", "backslashreplace")


def _offset_index(disk: Disk, files: FileTable, path: str) -> Iterator[Row]:
    index = OffsetIndex(disk, files, path, _base(path))
    for relative, position in OffsetIndex.ENTRY.iter_unpack(index.contents()):
        yield {"offset": index.base_offset + relative, "position": position}


def _time_index(disk: Disk, files: FileTable, path: str) -> Iterator[Row]:
    index = TimeIndex(disk, files, path, _base(path))
    for timestamp, relative in TimeIndex.ENTRY.iter_unpack(index.contents()):
        yield {"timestamp": timestamp, "offset": index.base_offset + relative}


def _transaction_index(disk: Disk, files: FileTable, path: str) -> Iterator[Row]:
    for row in TransactionIndex(disk, files, path).rows():
        yield row._asdict()


def _snapshot(disk: Disk, files: FileTable, path: str) -> Iterator[Row]:
    for entry in parse_snapshot(disk.read(path)):
        yield entry._asdict()


def _epochs(disk: Disk, files: FileTable, path: str) -> Iterator[Row]:
    for epoch, start_offset in checkpoints.parse_epochs(disk.read(path)):
        yield {"epoch": epoch, "start_offset": start_offset}


def _offsets(disk: Disk, files: FileTable, path: str) -> Iterator[Row]:
    for partition, offset in checkpoints.parse_offsets(disk.read(path)).items():
        yield {"topic": partition.topic, "partition": partition.partition, "offset": offset}


def _base(path: str) -> int:
    base = names.base_offset_of(path.rpartition("/")[2])
    assert base is not None
    return base
