"""What a leader takes, what it refuses and with which error, and what it rewrites."""

from __future__ import annotations

import pytest

from strandline.base.errors import ErrorCode, KafkaError
from strandline.partition.batch_validation import BatchValidator
from strandline.wire.compression import CODES, NAMES
from strandline.wire.record_batch import (
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    Record,
    build_batch,
    checksum,
    records_in,
)
from tests.batches import BODY_AT, NOW_MS, batch, header, records, resealed
from tests.unit.storage.logs import topic_config

HOUR_MS = 3_600_000


def refusal(data: bytes, *, version: int = 9, **config: object) -> KafkaError:
    with pytest.raises(KafkaError) as refused:
        BatchValidator(topic_config(**config)).check(memoryview(data), version, NOW_MS)
    return refused.value


def test_a_good_batch_is_taken_as_it_is() -> None:
    validator = BatchValidator(topic_config())
    data = batch(3, producer_id=1, epoch=0, sequence=0)
    assert validator.check(memoryview(data), 9, NOW_MS) == header(data)
    assert validator.is_plain
    assert not validator.needs_rewrite(header(data))


def flipped(position: int) -> bytes:
    data = bytearray(batch(2))
    data[position] ^= 1
    return bytes(data)


REFUSED = {
    "nothing": (b"", ErrorCode.INVALID_RECORD),
    "too few bytes": (batch()[:40], ErrorCode.CORRUPT_MESSAGE),
    "magic 0": (batch()[:16] + b"\x00" + batch()[17:], ErrorCode.INVALID_RECORD),
    "magic 1": (batch()[:16] + b"\x01" + batch()[17:30], ErrorCode.INVALID_RECORD),
    "magic 3": (batch()[:16] + b"\x03" + batch()[17:], ErrorCode.INVALID_RECORD),
    "two batches": (batch() + batch(), ErrorCode.INVALID_RECORD),
    "a torn batch": (batch()[:-1], ErrorCode.CORRUPT_MESSAGE),
    "a length below the header": (batch()[:8] + bytes(4) + batch()[12:], ErrorCode.CORRUPT_MESSAGE),
    "a negative length": (batch()[:8] + b"\xff" * 4 + batch()[12:], ErrorCode.CORRUPT_MESSAGE),
    "a wrong CRC": (flipped(17), ErrorCode.CORRUPT_MESSAGE),
    "a damaged header": (flipped(30), ErrorCode.CORRUPT_MESSAGE),
    "a damaged record": (flipped(70), ErrorCode.CORRUPT_MESSAGE),
    "a base offset": (resealed(batch(), base_offset=5), ErrorCode.INVALID_RECORD),
    "no records": (resealed(batch(), record_count=0, last_offset_delta=-1), ErrorCode.INVALID_RECORD),
    "fewer records than offsets": (resealed(batch(3), record_count=2), ErrorCode.INVALID_RECORD),
    "more records than offsets": (resealed(batch(3), last_offset_delta=1), ErrorCode.INVALID_RECORD),
    "a negative count": (resealed(batch(), record_count=-1), ErrorCode.INVALID_RECORD),
    "a producer without a sequence": (batch(producer_id=1, epoch=0), ErrorCode.INVALID_RECORD),
    "a control batch": (resealed(batch(), attributes=CONTROL_FLAG), ErrorCode.INVALID_RECORD),
    "a delete horizon": (resealed(batch(), attributes=DELETE_HORIZON_FLAG), ErrorCode.INVALID_RECORD),
    "an unknown codec": (resealed(batch(), attributes=5), ErrorCode.INVALID_RECORD),
    "a timestamp far ahead": (batch(timestamp=NOW_MS + HOUR_MS + 1), ErrorCode.INVALID_TIMESTAMP),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_bad_batch_is_refused_with_kafka_s_code(what: str) -> None:
    data, code = REFUSED[what]
    error = refusal(data)
    assert (error.code, bool(error.message)) == (code, True)


def test_zstd_needs_produce_version_7() -> None:
    data = batch(codec=CODES["zstd"])
    assert refusal(data, version=6).code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    BatchValidator(topic_config()).check(memoryview(data), 7, NOW_MS)


def test_max_message_bytes_counts_the_whole_batch() -> None:
    data = batch(1, size=500)
    BatchValidator(topic_config(max_message_bytes=len(data))).check(memoryview(data), 9, NOW_MS)
    assert refusal(data, max_message_bytes=len(data) - 1).code == ErrorCode.MESSAGE_TOO_LARGE


def test_records_too_far_ahead_are_named() -> None:
    contents = [r._replace(timestamp=NOW_MS + (2000 if r.offset in (1, 3) else 0)) for r in records(4)]
    error = refusal(batch(contents=contents), message_timestamp_after_max_ms=1000)
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert [number for number, _ in error.records] == [1, 3]
    BatchValidator(topic_config(message_timestamp_after_max_ms=2000)).check(
        memoryview(batch(contents=contents)), 9, NOW_MS
    )


def test_a_batch_too_far_ahead_whose_records_cannot_be_read_is_invalid() -> None:
    data = resealed(batch(timestamp=NOW_MS + 2 * HOUR_MS)[:-2], length=len(batch()) - 14)
    assert refusal(data).code == ErrorCode.INVALID_RECORD


def rewritten(data: bytes, **config: object) -> bytes:
    validator = BatchValidator(topic_config(**config))
    assert not validator.is_plain
    assert validator.needs_rewrite(validator.check(memoryview(data), 9, NOW_MS))
    made = validator.rewrite(data, NOW_MS)
    assert checksum(memoryview(made)) == header(made).crc
    assert header(made).size == len(made)
    return made


def rewrite_refusal(data: bytes, **config: object) -> KafkaError:
    with pytest.raises(KafkaError) as refused:
        rewritten(data, **config)
    return refused.value


def test_records_too_far_behind_are_named() -> None:
    contents = [r._replace(timestamp=NOW_MS - (5000 if r.offset == 2 else 0)) for r in records(4)]
    error = rewrite_refusal(batch(contents=contents), message_timestamp_before_max_ms=4999)
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert [number for number, _ in error.records] == [2]
    assert rewritten(batch(contents=contents), message_timestamp_before_max_ms=5000) == batch(
        contents=contents
    )


def test_a_record_without_a_timestamp_is_not_too_old() -> None:
    data = batch(timestamp=-1)
    assert rewritten(data, message_timestamp_before_max_ms=1) == data


def test_a_compacted_topic_refuses_records_without_keys_and_names_them() -> None:
    contents = [Record(0, NOW_MS, b"k", b"v"), Record(1, NOW_MS, None, b"v"), Record(2, NOW_MS, b"", None)]
    error = rewrite_refusal(build_batch(contents), cleanup_policy="compact")
    assert error.code == ErrorCode.INVALID_RECORD
    assert [number for number, _ in error.records] == [1]


def test_log_append_time_replaces_timestamps_and_ignores_bounds() -> None:
    data = batch(3, timestamp=NOW_MS + 9 * HOUR_MS)
    made = rewritten(data, message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=1)
    assert header(made).uses_log_append_time
    assert header(made).max_timestamp == NOW_MS
    assert {record.timestamp for record in records_in(made)} == {NOW_MS}
    assert made[BODY_AT:] == data[BODY_AT:]


def test_a_client_cannot_claim_log_append_time() -> None:
    data = resealed(batch(3), attributes=LOG_APPEND_TIME_FLAG)
    validator = BatchValidator(topic_config())
    assert validator.needs_rewrite(validator.check(memoryview(data), 9, NOW_MS))
    assert validator.rewrite(data, NOW_MS) == batch(3)


@pytest.mark.parametrize("there", NAMES)
@pytest.mark.parametrize("wanted", [*NAMES[1:], "uncompressed"])
def test_batches_are_recompressed_to_the_topic_s_codec(there: str, wanted: str) -> None:
    contents = [*records(5), Record(5, NOW_MS, None, None, ((b"h", b"v"), (b"n", None)))]
    data = build_batch(contents, attributes=CODES[there], producer_id=8, producer_epoch=1, base_sequence=70)
    codec = 0 if wanted == "uncompressed" else CODES[wanted]
    validator = BatchValidator(topic_config(compression_type=wanted))
    if codec == CODES[there]:
        assert not validator.needs_rewrite(header(data))
        return
    made = rewritten(data, compression_type=wanted)
    assert records_in(made) == contents
    found = header(made)
    assert (found.codec, found.producer_id, found.producer_epoch, found.base_sequence) == (codec, 8, 1, 70)
    assert (found.record_count, found.last_offset_delta, found.max_timestamp) == (
        6,
        5,
        header(data).max_timestamp,
    )


def test_recompression_and_append_time_go_together() -> None:
    made = rewritten(batch(3), compression_type="gzip", message_timestamp_type="LogAppendTime")
    assert header(made).codec == CODES["gzip"]
    assert [(r.offset, r.timestamp) for r in records_in(made)] == [(n, NOW_MS) for n in range(3)]


def test_a_batch_that_recompression_makes_too_large_is_refused() -> None:
    data = batch(contents=[Record(0, NOW_MS, b"k", bytes(5000))], codec=CODES["gzip"])
    error = rewrite_refusal(data, compression_type="uncompressed", max_message_bytes=2000)
    assert error.code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize(
    "config",
    [
        {"compression_type": "gzip"},
        {"cleanup_policy": "compact"},
        {"message_timestamp_before_max_ms": 10**12},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "data",
    [
        resealed(batch(2)[:-4], length=len(batch(2)) - 16),
        resealed(batch(2, codec=CODES["zstd"])[:-4], length=len(batch(2, codec=CODES["zstd"])) - 16),
        resealed(batch(2), base_timestamp=(1 << 63) - 1),
    ],
    ids=("cut", "cut zstd", "beyond 64 bits"),
)
def test_records_that_cannot_be_read_are_refused(data: bytes, config: dict[str, object]) -> None:
    validator = BatchValidator(topic_config(**config, message_timestamp_after_max_ms=(1 << 63) - 1))
    with pytest.raises(KafkaError) as refused:
        validator.rewrite(data, NOW_MS)
    assert refused.value.code in (ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP)


def test_timestamps_further_apart_than_64_bits_are_refused() -> None:
    first = build_batch([Record(0, 0, b"k", b""), Record(1, (1 << 63) - 1, b"k", b"")])
    apart = first[:BODY_AT] + first[BODY_AT:].replace(b"\x00\x00\x00\x02k", b"\x00\x01\x00\x02k", 1)
    validator = BatchValidator(topic_config(compression_type="gzip"))
    with pytest.raises(KafkaError) as refused:
        validator.rewrite(resealed(apart, base_timestamp=0), NOW_MS)
    assert refused.value.code == ErrorCode.INVALID_RECORD


def test_a_compressed_batch_too_far_ahead_is_refused_unread() -> None:
    """Some hundred bytes may hold millions of records, and the loop would stand still while they are named."""
    contents = [Record(number, NOW_MS + 2000, b"k", b"v") for number in range(2000)]
    squeezed = build_batch(contents, attributes=CODES["zstd"])
    many = build_batch(contents)
    for data in (squeezed, many):
        error = refusal(data, message_timestamp_after_max_ms=1000)
        assert (error.code, error.records) == (ErrorCode.INVALID_TIMESTAMP, ())


def test_no_more_records_are_named_than_a_client_can_read_about() -> None:
    validator = BatchValidator(topic_config(cleanup_policy="compact"))
    with pytest.raises(KafkaError) as refused:
        validator.rewrite(build_batch([Record(n, NOW_MS, None, b"v") for n in range(3000)]), NOW_MS)
    assert len(refused.value.records) == 1000


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_batch_without_its_largest_timestamp_gets_it(codec: str) -> None:
    """Some clients leave it out; without it nothing is found by time, and nothing ever expires."""
    contents = [
        Record(0, NOW_MS, None, b"a"),
        Record(1, NOW_MS + 70, None, b"b"),
        Record(2, NOW_MS + 5, None, b"c"),
    ]
    whole = build_batch(contents, attributes=CODES[codec])
    data = resealed(whole, max_timestamp=-1)
    validator = BatchValidator(topic_config())
    assert validator.needs_rewrite(validator.check(memoryview(data), 9, NOW_MS))
    assert validator.rewrite(data, NOW_MS) == whole
    late = resealed(build_batch([Record(0, NOW_MS + 2 * HOUR_MS, None, b"a")]), max_timestamp=-1)
    with pytest.raises(KafkaError) as refused:
        validator.rewrite(late, NOW_MS)
    assert refused.value.code == ErrorCode.INVALID_TIMESTAMP
