"""The checks of a batch that a client sends, before the leader gives it an offset.

Records are not decoded: the header's own counts, sizes and timestamps are checked, and the CRC. A topic that asks for
more (keys for compaction, another codec, log append time, a bound on old timestamps) has the batch rewritten.
"""

from __future__ import annotations

from typing import Final

from strandline.base.buffers import Buffer
from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.tuples import new_tuple
from strandline.config import TopicConfig
from strandline.wire import compression
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
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatch,
    Record,
    build_batch,
    checksum,
    read_header,
    records_in,
    seal,
)

# zstd came with Produce version 7: an older client could not read back what it wrote.
ZSTD_PRODUCE_VERSION_MIN: Final = 7
_NO_BOUND: Final = 0x7FFFFFFFFFFFFFFF
# Of the records of a batch that are at fault so many are named, each with a sentence.
_NAMED_MAX: Final = 1000
_NOT_FOR_CLIENTS: Final = CONTROL_FLAG | DELETE_HORIZON_FLAG


class BatchValidator:
    """A topic's rules for incoming batches, worked out from its configuration. Never changes."""

    __slots__ = (
        "_after_max_ms",
        "_before_max_ms",
        "_codec",
        "_is_compacted",
        "_level",
        "_size_max",
        "_uses_append_time",
        "is_plain",
    )

    def __init__(self, config: TopicConfig) -> None:
        self._size_max = config.max_message_bytes
        self._uses_append_time = config.message_timestamp_type == "LogAppendTime"
        self._after_max_ms = config.message_timestamp_after_max_ms
        self._before_max_ms = config.message_timestamp_before_max_ms
        self._is_compacted = "compact" in config.cleanup_policy
        kind = "none" if config.compression_type == "uncompressed" else config.compression_type
        # None: batches keep the codec that the producer chose.
        self._codec = compression.CODES.get(kind)
        levels = {
            "gzip": config.compression_gzip_level,
            "lz4": config.compression_lz4_level,
            "zstd": config.compression_zstd_level,
        }
        self._level = levels.get(kind)
        self.is_plain = self._codec is None and not self._uses_append_time and not self._reads_records()

    def _reads_records(self) -> bool:
        return self._is_compacted or self._before_max_ms != _NO_BOUND

    def check(self, batch: memoryview, produce_version: int, now_ms: int) -> BatchHeader:
        """The header of the one valid batch in `batch`; raises KafkaError with what is wrong."""
        size = len(batch)
        if size < HEADER_BYTES:
            raise _too_short(batch)
        header = new_tuple(BatchHeader, HEADER.unpack_from(batch, 0))  # `_make` without a call of Python
        if header.magic != MAGIC:
            raise _invalid(f"Record batches must have magic {MAGIC}, not {header.magic}.")
        if header.length + LOG_OVERHEAD_BYTES != size:
            raise _wrong_length(header, size)
        if size > self._size_max:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"The batch has {size} bytes; max.message.bytes is {self._size_max}.",
            )
        if header.base_offset != 0:
            raise _invalid(f"The base offset must be 0, not {header.base_offset}.")
        if checksum(batch) != header.crc:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "The batch's CRC does not match its contents.")
        count = header.record_count
        if count <= 0 or header.last_offset_delta + 1 != count:
            raise _invalid(
                f"A batch of {count} records with a last offset delta of {header.last_offset_delta}."
            )
        if header.producer_id >= 0 and header.base_sequence < 0:
            raise _invalid(f"Producer {header.producer_id} sent sequence {header.base_sequence}.")
        if header.attributes:
            _check_attributes(header, produce_version)
        if header.max_timestamp - now_ms > self._after_max_ms and not self._uses_append_time:
            raise self._too_far_ahead(batch, header, now_ms)
        return header

    def _too_far_ahead(self, batch: Buffer, header: BatchHeader, now_ms: int) -> KafkaError:
        """Names the records that are at fault where that takes no time: clients take the whole batch for refused if
        none is named, and what is compressed may hold millions."""
        why = f"The timestamp is more than message.timestamp.after.max.ms={self._after_max_ms} ahead of {now_ms}."
        if header.codec != compression.NONE or header.record_count > _NAMED_MAX:
            return KafkaError(ErrorCode.INVALID_TIMESTAMP, why)
        try:
            timestamps = [record.timestamp for record in records_in(batch)]
        except CorruptBatch as error:
            return _invalid(str(error))
        late = tuple(
            (n, why) for n, timestamp in enumerate(timestamps) if timestamp - now_ms > self._after_max_ms
        )
        return KafkaError(ErrorCode.INVALID_TIMESTAMP, why, late)

    def needs_rewrite(self, header: BatchHeader) -> bool:
        """Whether the topic asks for more than the header shows."""
        if self.is_plain:
            uses_append_time = bool(header.attributes & LOG_APPEND_TIME_FLAG)
            return uses_append_time or header.max_timestamp < header.base_timestamp
        return (
            self._uses_append_time
            or self._reads_records()
            or self._changes_codec(header)
            or header.max_timestamp < header.base_timestamp
        )

    def _changes_codec(self, header: BatchHeader) -> bool:
        return self._codec is not None and self._codec != header.codec

    def rewrite(self, batch: bytes, now_ms: int) -> bytes:
        """The batch as the topic wants it. May block for milliseconds, so it is run in a worker."""
        header = read_header(batch)
        lacks_timestamp = header.max_timestamp < header.base_timestamp  # some clients leave it out
        if self._reads_records() or self._changes_codec(header) or lacks_timestamp:
            try:
                records = records_in(batch)
                self._check_records(records, now_ms)
                if lacks_timestamp:
                    newest = max(record.timestamp for record in records)
                    header = header._replace(max_timestamp=newest)
                    batch = seal(header, batch[HEADER_BYTES:])
                    if newest - now_ms > self._after_max_ms and not self._uses_append_time:
                        raise self._too_far_ahead(batch, header, now_ms)
                if self._changes_codec(header):
                    batch = self._recompressed(records, header)
                    header = read_header(batch)
            except CorruptBatch as error:
                raise _invalid(str(error)) from error
        return self._with_timestamp_type(batch, header, now_ms)

    def _check_records(self, records: list[Record], now_ms: int) -> None:
        if self._is_compacted:
            why = "A compacted topic needs a key."
            keyless = [number for number, record in enumerate(records) if record.key is None]
            if keyless:
                raise KafkaError(ErrorCode.INVALID_RECORD, why, _named(keyless, why))
        if self._uses_append_time:
            return
        why = f"The timestamp is more than message.timestamp.before.max.ms={self._before_max_ms} behind {now_ms}."
        early = [
            number
            for number, record in enumerate(records)
            if record.timestamp != NO_TIMESTAMP and now_ms - record.timestamp > self._before_max_ms
        ]
        if early:
            raise KafkaError(ErrorCode.INVALID_TIMESTAMP, why, _named(early, why))

    def _recompressed(self, records: list[Record], header: BatchHeader) -> bytes:
        assert self._codec is not None
        batch = build_batch(
            records,
            base_offset=0,
            last_offset=header.last_offset_delta,
            attributes=(header.attributes & ~CODEC_MASK) | self._codec,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            compression_level=self._level,
        )
        if len(batch) > self._size_max:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"Recompressed the batch has {len(batch)} bytes; max.message.bytes is {self._size_max}.",
            )
        return batch

    def _with_timestamp_type(self, batch: bytes, header: BatchHeader, now_ms: int) -> bytes:
        if self._uses_append_time:
            header = header._replace(
                attributes=header.attributes | LOG_APPEND_TIME_FLAG, max_timestamp=now_ms
            )
        elif header.uses_log_append_time:
            header = header._replace(attributes=header.attributes & ~LOG_APPEND_TIME_FLAG)
        else:
            return batch
        return seal(header, batch[HEADER_BYTES:])


def _named(numbers: list[int], why: str) -> tuple[tuple[int, str], ...]:
    return tuple((number, why) for number in numbers[:_NAMED_MAX])


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
            ErrorCode.CORRUPT_MESSAGE, f"A batch of {header.size} bytes in {size} bytes of records."
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
