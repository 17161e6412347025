"""The checks of a batch that a client sends, before the leader gives it an offset.

`check` looks at the header: sizes, counts, attributes, CRC. `validate` looks at every record (wire/record_check.py), as
Kafka's LogValidator does, and rewrites the batch as the topic requires: with the right largest timestamp, in another
codec, with the log append time. In a topic with strandline.record.validation=header, records are read only where its
other settings ask for it: keys for compaction, a bound on old timestamps.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final

from strandline.base.buffers import Buffer
from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.tuples import new_tuple
from strandline.config import TopicConfig
from strandline.wire import compression
from strandline.wire.kernel import KERNEL
from strandline.wire.record_batch import (
    CODEC_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_POSITION,
    MAX_TIMESTAMP_POSITION,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatch,
    Record,
    checksum,
    read_header,
    records_in,
    seal,
)
from strandline.wire.record_check import (
    INFLATED_BYTES_MAX,
    LIMIT_FAULTS,
    RECORD_BYTES_MIN,
    RECORD_COUNT_MAX,
    Limits,
    RecordFault,
    RecordVerdict,
    check,
)

MAX_TIMESTAMP: Final = Struct(">q")
# zstd came with Produce version 7: an older client could not read back what it wrote.
ZSTD_PRODUCE_VERSION_MIN: Final = 7
_NO_BOUND: Final = 0x7FFFFFFFFFFFFFFF
# In a batch of at most so many records, each record at fault is named.
_NAMED_MAX: Final = 1000
_NOT_FOR_CLIENTS: Final = CONTROL_FLAG | DELETE_HORIZON_FLAG


# A check within these limits runs in the loop, and a larger one in a worker. Each limit is about a millisecond's work:
# for the kernel, or for Python where the kernel is not installed.
_INLINE: Final = (
    Limits(inflated_bytes_max=64 * 1024, record_count_max=256)
    if KERNEL is None
    else Limits(inflated_bytes_max=1024 * 1024, record_count_max=100_000)
)
# A compressed batch of more than this is not tried in the loop: it is likely to inflate to more than the limit.
_INLINE_COMPRESSED_BYTES_MAX: Final = _INLINE.inflated_bytes_max // 4
_WHOLE: Final = Limits()

# No codec inflates a byte to more than this: 4 bytes of zstd stand for a block of 128 KB.
_INFLATION_MAX: Final = 32 * 1024

ValidBatch = tuple[Buffer, BatchHeader]


class BatchValidator:
    """A topic's rules for incoming batches, computed once from its configuration."""

    __slots__ = (
        "_after_max_ms",
        "_before_max_ms",
        "_checks_all",
        "_codec",
        "_is_compacted",
        "_level",
        "_size_max",
        "_uses_append_time",
    )

    def __init__(self, config: TopicConfig) -> None:
        self._size_max = config.max_message_bytes
        self._uses_append_time = config.message_timestamp_type == "LogAppendTime"
        self._after_max_ms = config.message_timestamp_after_max_ms
        self._before_max_ms = config.message_timestamp_before_max_ms
        self._is_compacted = "compact" in config.cleanup_policy
        self._checks_all = config.strandline_record_validation == "full"
        kind = "none" if config.compression_type == "uncompressed" else config.compression_type
        # None: batches keep the codec that the producer chose.
        self._codec = compression.CODES.get(kind)
        levels = {
            "gzip": config.compression_gzip_level,
            "lz4": config.compression_lz4_level,
            "zstd": config.compression_zstd_level,
        }
        self._level = levels.get(kind)

    def _reads_records(self, header: BatchHeader) -> bool:
        return (
            self._checks_all
            or self._is_compacted
            or self._before_max_ms != _NO_BOUND
            or header.max_timestamp < header.base_timestamp  # some clients leave the largest timestamp out
            or self._changes_codec(header)
        )

    def check(self, batch: memoryview, produce_version: int) -> BatchHeader:
        """Returns the header of the one batch in `batch` without reading its records; raises KafkaError with the
        fault."""
        size = len(batch)
        if size < HEADER_BYTES:
            raise _too_short(batch)
        header = new_tuple(BatchHeader, HEADER.unpack_from(batch, 0))  # `_make` without a call of Python
        if header.magic != MAGIC:
            raise _invalid(f"Record batches must have magic {MAGIC}, not {header.magic}.")
        if header.length + LOG_OVERHEAD_BYTES != size:
            raise _wrong_length(header, size)
        if size > self._size_max:
            raise _too_large(f"The batch has {size} bytes; max.message.bytes is {self._size_max}.")
        if header.base_offset != 0:
            raise _invalid(f"The base offset must be 0, not {header.base_offset}.")
        if checksum(batch) != header.crc:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "The batch's CRC does not match its contents.")
        count = header.record_count
        if count <= 0 or header.last_offset_delta + 1 != count:
            raise _invalid(
                f"The batch has {count} records and a last offset delta of {header.last_offset_delta}."
            )
        if header.producer_id >= 0 and header.base_sequence < 0:
            raise _invalid(
                f"Producer {header.producer_id} sent sequence {header.base_sequence}; sequences begin at 0."
            )
        if header.attributes:
            _check_attributes(header, produce_version)
        if count > (size - HEADER_BYTES) // RECORD_BYTES_MIN and (
            not header.codec or count > RECORD_COUNT_MAX
        ):
            raise _impossible_count(header)
        return header

    def validate_inline(self, batch: memoryview, header: BatchHeader, now_ms: int) -> ValidBatch | None:
        """Does the same as `validate`; returns None if that would take longer than the loop may wait."""
        if self._reads_records(header):
            if self._changes_codec(header) or (
                header.attributes & CODEC_MASK and len(batch) > _INLINE_COMPRESSED_BYTES_MAX
            ):
                return None
            verdict = check(batch, _INLINE)
            if verdict.fault:
                if verdict.fault in LIMIT_FAULTS:
                    return None
                raise _refused(verdict)
            header = self._checked(batch, header, verdict, now_ms)
        elif header.max_timestamp - now_ms > self._after_max_ms and not self._uses_append_time:
            raise self._out_of_range(batch, header, now_ms)
        return self._with_header(batch, header, now_ms)

    def validate(self, batch: bytes, header: BatchHeader, now_ms: int) -> ValidBatch:
        """Returns the batch as the topic requires it, and its header; raises KafkaError with the fault of a record.

        It may block for as long as it takes to inflate INFLATED_BYTES_MAX, so it runs in a worker.
        """
        verdict = check(batch, _WHOLE)
        if verdict.fault:
            raise _refused(verdict)
        header = self._checked(batch, header, verdict, now_ms)
        if not self._changes_codec(header):
            return self._with_header(batch, header, now_ms)
        header, body = self._recompressed(batch, header)
        return self._sealed(header, body, now_ms)

    def _checked(
        self, batch: Buffer, header: BatchHeader, verdict: RecordVerdict, now_ms: int
    ) -> BatchHeader:
        """Returns the header with the largest timestamp of the records; raises KafkaError if the topic refuses a
        record."""
        if verdict.keyless_count and self._is_compacted:
            why = "A compacted topic needs a key."
            raise KafkaError(
                ErrorCode.INVALID_RECORD, why, _named(batch, header, why, lambda record: record.key is None)
            )
        if self._uses_append_time:
            if header.attributes & LOG_APPEND_TIME_FLAG:
                why = "Producers may not set the timestamp type to LogAppendTime."
                raise KafkaError(
                    ErrorCode.INVALID_TIMESTAMP, why, _named(batch, header, why, lambda record: True)
                )
            return header
        newest = verdict.max_timestamp
        if newest - now_ms > self._after_max_ms or now_ms - verdict.min_timestamp > self._before_max_ms:
            raise self._out_of_range(batch, header, now_ms)
        return header if newest == header.max_timestamp else header._replace(max_timestamp=newest)

    def _out_of_range(self, batch: Buffer, header: BatchHeader, now_ms: int) -> KafkaError:
        why = (
            f"The timestamp is more than message.timestamp.after.max.ms={self._after_max_ms} ahead of {now_ms}, "
            f"or more than message.timestamp.before.max.ms={self._before_max_ms} before it."
        )
        late, early = now_ms + self._after_max_ms, now_ms - self._before_max_ms
        records = _named(
            batch,
            header,
            why,
            lambda record: record.timestamp != NO_TIMESTAMP and not early <= record.timestamp <= late,
        )
        return KafkaError(ErrorCode.INVALID_TIMESTAMP, why, records)

    def _changes_codec(self, header: BatchHeader) -> bool:
        return self._codec is not None and self._codec != header.attributes & CODEC_MASK

    def _recompressed(self, batch: bytes, header: BatchHeader) -> tuple[BatchHeader, bytes]:
        """Returns the same records in the topic's codec, and their header. They have been checked."""
        assert self._codec is not None
        body = compression.decompress(header.codec, memoryview(batch)[HEADER_BYTES:])
        body = compression.compress(self._codec, body, self._level)
        size = HEADER_BYTES + len(body)
        if size > self._size_max:
            raise _too_large(
                f"The batch has {size} bytes in the topic's codec; max.message.bytes is {self._size_max}."
            )
        changed = header._replace(
            length=size - LOG_OVERHEAD_BYTES,
            attributes=(header.attributes & ~CODEC_MASK) | self._codec,
        )
        return changed, body

    def _with_header(self, batch: Buffer, header: BatchHeader, now_ms: int) -> ValidBatch:
        """Returns the batch with this header; copies it only where the header changes anything."""
        if (
            self._uses_append_time
            or header.attributes & LOG_APPEND_TIME_FLAG
            or header.max_timestamp != MAX_TIMESTAMP.unpack_from(batch, MAX_TIMESTAMP_POSITION)[0]
        ):
            return self._sealed(header, batch[HEADER_BYTES:], now_ms)
        return batch, header

    def _sealed(self, header: BatchHeader, body: Buffer, now_ms: int) -> ValidBatch:
        attributes = header.attributes & ~LOG_APPEND_TIME_FLAG
        if self._uses_append_time:
            header = header._replace(attributes=attributes | LOG_APPEND_TIME_FLAG, max_timestamp=now_ms)
        else:
            header = header._replace(attributes=attributes)
        sealed = seal(header, body)
        return sealed, read_header(sealed)


def _named(
    batch: Buffer, header: BatchHeader, why: str, is_at_fault: Callable[[Record], bool]
) -> tuple[tuple[int, str], ...]:
    """Returns the records at fault, so that clients can send the others again; returns none where reading takes
    long."""
    if header.record_count > _NAMED_MAX:
        return ()
    try:
        records = records_in(batch)
    except CorruptBatch:  # the records of this batch are not checked
        return ()
    return tuple((number, why) for number, record in enumerate(records) if is_at_fault(record))


def _refused(verdict: RecordVerdict) -> KafkaError:
    if verdict.fault in LIMIT_FAULTS:
        return _too_large(
            f"The batch is too large: {verdict.sentence()}. At most {INFLATED_BYTES_MAX} bytes and "
            f"{RECORD_COUNT_MAX} records are allowed; send smaller batches."
        )
    return _invalid(f"The batch is malformed: {verdict.sentence()}.")


def _impossible_count(header: BatchHeader) -> KafkaError:
    size = header.size - HEADER_BYTES
    room = size if header.codec == compression.NONE else size * _INFLATION_MAX
    if header.record_count > room // RECORD_BYTES_MIN:
        return _invalid(f"{size} bytes cannot hold {header.record_count} records.")
    return _refused(RecordVerdict(RecordFault.TOO_MANY_RECORDS))


def _too_large(message: str) -> KafkaError:
    return KafkaError(ErrorCode.MESSAGE_TOO_LARGE, message)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)


def _too_short(batch: memoryview) -> KafkaError:
    if len(batch) == 0:
        return _invalid("A Produce request has exactly one batch for a partition; this one has none.")
    if len(batch) > MAGIC_POSITION and batch[MAGIC_POSITION] < MAGIC:
        return _invalid(f"Record batches must have magic {MAGIC}, not {batch[MAGIC_POSITION]}.")
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{len(batch)} bytes are too few for a record batch.")


def _wrong_length(header: BatchHeader, size: int) -> KafkaError:
    if header.size > size or header.size < HEADER_BYTES:
        return KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"The batch has {header.size} bytes by its header, and the field of records has {size}.",
        )
    return _invalid("A Produce request has exactly one batch for a partition; this one has more.")


def _check_attributes(header: BatchHeader, produce_version: int) -> None:
    if header.attributes & _NOT_FOR_CLIENTS:
        raise _invalid("Clients may not write control batches.")
    codec = header.codec
    if codec > compression.ZSTD:
        raise _invalid(f"Unknown compression codec {codec}.")
    if codec == compression.ZSTD and produce_version < ZSTD_PRODUCE_VERSION_MIN:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"zstd needs Produce version {ZSTD_PRODUCE_VERSION_MIN} or higher, not {produce_version}.",
        )
