"""The batches that a leader takes, those that it refuses and with which error, and those that it rewrites."""

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
from tests.hostile_batches import (
    CODECS,
    bomb_of_bytes,
    bomb_of_records,
    broken_streams,
    lies,
    stricter_than_kafka,
)
from tests.unit.storage.logs import topic_config

HOUR_MS = 3_600_000


def validated(data: bytes, *, version: int = 9, **config: object) -> bytes:
    """Returns the batch as it would be appended."""
    validator = BatchValidator(topic_config(**config))
    found = validator.check(memoryview(data), version)
    valid = validator.validate_inline(memoryview(data), found, NOW_MS)
    made, made_header = valid or validator.validate(data, found, NOW_MS)
    assert checksum(memoryview(made)) == made_header.crc
    assert made_header == header(bytes(made))
    assert made_header.size == len(made)
    return bytes(made)


def refusal(data: bytes, *, version: int = 9, **config: object) -> KafkaError:
    with pytest.raises(KafkaError) as refused:
        validated(data, version=version, **config)
    return refused.value


def test_a_good_batch_is_taken_as_it_is() -> None:
    validator = BatchValidator(topic_config())
    data = memoryview(batch(3, producer_id=1, epoch=0, sequence=0))
    found = validator.check(data, 9)
    valid = validator.validate_inline(data, found, NOW_MS)
    assert valid is not None
    assert valid[0] is data, "nothing is copied"
    assert valid[1] is found


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
    validated(data, version=7)


def test_max_message_bytes_counts_the_whole_batch() -> None:
    data = batch(1, size=500)
    validated(data, max_message_bytes=len(data))
    assert refusal(data, max_message_bytes=len(data) - 1).code == ErrorCode.MESSAGE_TOO_LARGE


def test_records_too_far_ahead_are_named() -> None:
    contents = [r._replace(timestamp=NOW_MS + (2000 if r.offset in (1, 3) else 0)) for r in records(4)]
    error = refusal(batch(contents=contents), message_timestamp_after_max_ms=1000)
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert [number for number, _ in error.records] == [1, 3]
    validated(batch(contents=contents), message_timestamp_after_max_ms=2000)


def test_a_batch_too_far_ahead_whose_records_cannot_be_read_is_invalid() -> None:
    data = resealed(batch(timestamp=NOW_MS + 2 * HOUR_MS)[:-2], length=len(batch()) - 14)
    assert refusal(data).code == ErrorCode.INVALID_RECORD


def test_records_too_far_behind_are_named() -> None:
    contents = [r._replace(timestamp=NOW_MS - (5000 if r.offset == 2 else 0)) for r in records(4)]
    error = refusal(batch(contents=contents), message_timestamp_before_max_ms=4999)
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert [number for number, _ in error.records] == [2]
    assert validated(batch(contents=contents), message_timestamp_before_max_ms=5000) == batch(
        contents=contents
    )


def test_a_record_without_a_timestamp_is_not_too_old() -> None:
    data = batch(timestamp=-1)
    assert validated(data, message_timestamp_before_max_ms=1) == data


def test_a_compacted_topic_refuses_records_without_keys_and_names_them() -> None:
    contents = [Record(0, NOW_MS, b"k", b"v"), Record(1, NOW_MS, None, b"v"), Record(2, NOW_MS, b"", None)]
    error = refusal(build_batch(contents), cleanup_policy="compact")
    assert error.code == ErrorCode.INVALID_RECORD
    assert [number for number, _ in error.records] == [1]


def test_log_append_time_replaces_timestamps_and_ignores_bounds() -> None:
    data = batch(3, timestamp=NOW_MS + 9 * HOUR_MS)
    made = validated(data, message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=1)
    assert header(made).uses_log_append_time
    assert header(made).max_timestamp == NOW_MS
    assert {record.timestamp for record in records_in(made)} == {NOW_MS}
    assert made[BODY_AT:] == data[BODY_AT:]


def test_a_client_cannot_claim_log_append_time() -> None:
    data = resealed(batch(3), attributes=LOG_APPEND_TIME_FLAG)
    assert validated(data) == batch(3)
    error = refusal(data, message_timestamp_type="LogAppendTime")
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert [number for number, _ in error.records] == [0, 1, 2]


@pytest.mark.parametrize("there", NAMES)
@pytest.mark.parametrize("wanted", [*NAMES[1:], "uncompressed"])
def test_batches_are_recompressed_to_the_topic_s_codec(there: str, wanted: str) -> None:
    contents = [*records(5), Record(5, NOW_MS, None, None, ((b"h", b"v"), (b"n", None)))]
    data = build_batch(contents, attributes=CODES[there], producer_id=8, producer_epoch=1, base_sequence=70)
    codec = 0 if wanted == "uncompressed" else CODES[wanted]
    made = validated(data, compression_type=wanted)
    if codec == CODES[there]:
        assert made == data
    assert records_in(made) == contents
    found = header(made)
    assert (found.codec, found.producer_id, found.producer_epoch, found.base_sequence) == (codec, 8, 1, 70)
    assert (found.record_count, found.last_offset_delta, found.max_timestamp) == (
        6,
        5,
        header(data).max_timestamp,
    )


def test_recompression_and_append_time_go_together() -> None:
    made = validated(batch(3), compression_type="gzip", message_timestamp_type="LogAppendTime")
    assert header(made).codec == CODES["gzip"]
    assert [(r.offset, r.timestamp) for r in records_in(made)] == [(n, NOW_MS) for n in range(3)]


def test_a_batch_that_recompression_makes_too_large_is_refused() -> None:
    data = batch(contents=[Record(0, NOW_MS, b"k", bytes(5000))], codec=CODES["gzip"])
    error = refusal(data, compression_type="uncompressed", max_message_bytes=2000)
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
    error = refusal(data, **config, message_timestamp_after_max_ms=(1 << 63) - 1)
    assert error.code == ErrorCode.INVALID_RECORD


def test_timestamps_further_apart_than_64_bits_are_refused() -> None:
    first = build_batch([Record(0, 0, b"k", b""), Record(1, (1 << 63) - 1, b"k", b"")])
    apart = first[:BODY_AT] + first[BODY_AT:].replace(b"\x00\x00\x00\x02k", b"\x00\x01\x00\x02k", 1)
    apart = resealed(apart, base_timestamp=-(1 << 62))
    assert refusal(resealed(apart, base_timestamp=-(1 << 63))).code == ErrorCode.INVALID_RECORD


def test_a_compressed_batch_too_far_ahead_is_refused_unread() -> None:
    """Some hundred bytes may hold millions of records, and the loop would stand still while they are named."""
    contents = [Record(number, NOW_MS + 2000, b"k", b"v") for number in range(2000)]
    squeezed = build_batch(contents, attributes=CODES["zstd"])
    many = build_batch(contents)
    for data in (squeezed, many):
        error = refusal(data, message_timestamp_after_max_ms=1000)
        assert (error.code, error.records) == (ErrorCode.INVALID_TIMESTAMP, ())


def test_no_more_records_are_named_than_a_client_can_read_about() -> None:
    error = refusal(
        build_batch([Record(n, NOW_MS, None, b"v") for n in range(3000)]), cleanup_policy="compact"
    )
    assert (error.code, error.records) == (ErrorCode.INVALID_RECORD, ())


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
    assert validated(data) == whole
    assert validated(data, strandline_record_validation="header") == whole
    late = resealed(build_batch([Record(0, NOW_MS + 2 * HOUR_MS, None, b"a")]), max_timestamp=-1)
    assert refusal(late).code == ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_whose_insides_lie_is_invalid(codec: int) -> None:
    for name, data in (lies(codec) | stricter_than_kafka(codec)).items():
        assert refusal(data).code == ErrorCode.INVALID_RECORD, name


def test_a_batch_whose_stream_is_not_whole_is_invalid() -> None:
    for name, data in broken_streams().items():
        assert refusal(data).code == ErrorCode.INVALID_RECORD, name


def test_the_largest_timestamp_is_that_of_the_records_whatever_the_header_says() -> None:
    for codec in CODECS:
        data = batch(3, codec=codec)
        for said in (5, NOW_MS + 1, 1 << 62):
            assert validated(resealed(data, max_timestamp=said)) == data


def test_header_validation_reads_no_records_where_nothing_asks_for_them() -> None:
    data = lies(0)["bytes after the last record"]
    assert validated(data, strandline_record_validation="header") == data
    assert refusal(data, strandline_record_validation="header", cleanup_policy="compact").code == (
        ErrorCode.INVALID_RECORD
    )
    impossible = lies(0)["count 2 with one record"]
    assert refusal(impossible, strandline_record_validation="header").code == ErrorCode.INVALID_RECORD


def test_bombs_are_too_large_and_not_opened_on_the_loop() -> None:
    validator = BatchValidator(topic_config())
    for data in (bomb_of_bytes(101), bomb_of_records(1_000_001, ascending=False)):
        assert len(data) < 300_000
        assert refusal(data).code == ErrorCode.MESSAGE_TOO_LARGE
    large = bomb_of_bytes(2)
    found = validator.check(memoryview(large), 9)
    assert validator.validate_inline(memoryview(large), found, NOW_MS) is None
    assert validated(large) == large


def test_a_million_records_that_all_have_the_same_offset_are_refused() -> None:
    assert refusal(bomb_of_records(1_000_000, ascending=False)).code == ErrorCode.INVALID_RECORD
