"""What is read and written by hand for committed offsets is what the declared schemas say."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from strandline.broker.api.k08_offset_commit import decoded, walked
from strandline.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.wire.codec import encode
from strandline.wire.record_batch import Record, build_batch, build_small_batch, small_records
from strandline.wire.records import offset_commits
from strandline.wire.records.offsets_framing import encode_key, encode_value
from strandline.wire.records.offsets_topic import OffsetCommitKey, OffsetCommitValue

from .effort import effort

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
TEXT = st.text(max_size=50)
NOTES = st.just("") | TEXT


@given(
    group=TEXT,
    topic=TEXT,
    committed=st.lists(st.tuples(INT32, INT64, INT32, NOTES, INT64), max_size=100),
    before=st.integers(0, 2),
)
@effort(50)
def test_records_are_those_of_the_schema(
    group: str, topic: str, committed: list[tuple[int, int, int, str, int]], before: int
) -> None:
    others: list[tuple[bytes, bytes | None]] = [(b"key", b"value")] * before
    expected = others + [
        (
            encode_key(OffsetCommitKey(group=group, topic=topic, partition=partition)),
            encode_value(
                OffsetCommitValue(
                    offset=offset, leader_epoch=epoch, metadata=note, commit_timestamp=commit_ms
                )
            ),
        )
        for partition, offset, epoch, note, commit_ms in committed
    ]
    records = small_records(others)
    offset_commits.append_records(
        records,
        group,
        topic,
        [
            (partition, (offset, epoch, note, commit_ms, -1))
            for partition, offset, epoch, note, commit_ms in committed
        ],
    )
    assert records == small_records(expected)


@given(
    sizes=st.lists(
        st.tuples(st.integers(0, 3000), st.none() | st.integers(0, 3000)), min_size=1, max_size=30
    ),
    codec=st.sampled_from((0, 1, 4)),
)
@effort(30)
def test_small_batches_are_batches(sizes: list[tuple[int, int | None]], codec: int) -> None:
    pairs = [(b"k" * key, None if value is None else b"v" * value) for key, value in sizes]
    batch, header = build_small_batch(pairs, 1_700_000_000_000, codec)
    records = [Record(n, 1_700_000_000_000, key, value) for n, (key, value) in enumerate(pairs)]
    assert batch == build_batch(records, attributes=codec)
    assert (header.record_count, header.size) == (len(pairs), len(batch))


def _requests() -> st.SearchStrategy[OffsetCommitRequest]:
    partition = st.builds(
        OffsetCommitRequestPartition,
        partition_index=INT32,
        committed_offset=INT64,
        committed_leader_epoch=INT32,
        committed_metadata=st.none() | NOTES,
    )
    topic = st.builds(
        OffsetCommitRequestTopic,
        name=TEXT,
        topic_id=st.binary(min_size=16, max_size=16),
        partitions=st.lists(partition, max_size=4).map(tuple) | st.just((_ONE,) * 130),
    )
    return st.builds(
        OffsetCommitRequest,
        group_id=TEXT | st.just("g" * 200),
        generation_id_or_member_epoch=INT32,
        member_id=TEXT,
        group_instance_id=st.none() | TEXT,
        topics=st.lists(topic, max_size=3).map(tuple),
    )


_ONE = OffsetCommitRequestPartition(partition_index=1, committed_offset=2, committed_metadata="")


@given(request=_requests(), version=st.integers(8, 10), data=st.data())
@effort(200)
def test_a_walked_request_is_what_the_codec_reads_and_what_the_walk_does_not_read_is_left_to_the_codec(
    request: OffsetCommitRequest, version: int, data: st.DataObject
) -> None:
    sent = bytearray(b"head" + encode(request, version))
    for _ in range(data.draw(st.integers(0, 2))):
        sent[data.draw(st.integers(4, len(sent) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(sent[: len(sent) - data.draw(st.sampled_from((0, 0, 0, 1, 5)))])
    found = walked(cut, 4, version)
    if found is not None:
        expected = decoded(cut, 4, version)
        assert found == expected._replace(topics=[_without_empty_notes(topic) for topic in expected.topics])


def _without_empty_notes(topic: Any) -> Any:
    return topic._replace(partitions=[(*each[:3], each[3] or None) for each in topic.partitions])


def test_a_plain_commit_is_walked() -> None:
    topic = OffsetCommitRequestTopic(name="orders", partitions=(_ONE, _ONE))
    request = OffsetCommitRequest(group_id="group", member_id="member", topics=(topic,))
    for version in (8, 9, 10):
        assert walked(bytes(encode(request, version)), 0, version) is not None
