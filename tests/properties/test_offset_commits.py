"""Code that reads and writes committed offsets by hand agrees with the declared schemas."""

from __future__ import annotations

from itertools import cycle
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from strandline.base.ids import ZERO_UUID
from strandline.broker.api.offset_commit_template import CommitRequest, CommitTemplate, with_offsets
from strandline.groups.committed_offset import OffsetChanges
from strandline.telemetry.request_metrics import RequestTimes
from strandline.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.wire.codec import EncodeError, decode, encode
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
    topic_id=st.just(ZERO_UUID) | st.binary(min_size=16, max_size=16),
    committed=st.lists(st.tuples(INT32, INT64, INT32, NOTES), max_size=100),
    commit_ms=INT64,
    before=st.integers(0, 70),
)
@effort(50)
def test_records_are_those_of_the_schema(
    group: str,
    topic: str,
    topic_id: bytes,
    committed: list[tuple[int, int, int, str]],
    commit_ms: int,
    before: int,
) -> None:
    others: list[tuple[bytes, bytes | None]] = [(b"key", b"value")] * before
    expected = others + [
        (
            encode_key(OffsetCommitKey(group=group, topic=topic, partition=partition)),
            encode_value(
                OffsetCommitValue(
                    offset=offset,
                    leader_epoch=epoch,
                    metadata=note,
                    commit_timestamp=commit_ms,
                    topic_id=topic_id,
                )
            ),
        )
        for partition, offset, epoch, note in committed
    ]
    partitions, offsets, epochs, notes = zip(*committed, strict=True) if committed else ((), (), (), ())
    positions = [offset_commits.POSITION.pack(*each) for each in zip(offsets, epochs, strict=True)]
    for _ in range(2):  # how these partitions are written is remembered
        records = offset_commits.records_of(
            before, group, topic, topic_id, partitions, positions, notes if any(notes) else None, commit_ms
        )
        assert b"".join(records) == b"".join(small_records(expected)[before:])


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


@given(request=_requests(), version=st.integers(6, 10), data=st.data())
@effort(200)
def test_a_template_reads_the_same_commit_as_the_codec(
    request: OffsetCommitRequest, version: int, data: st.DataObject
) -> None:
    pattern = pattern_of(request, version)
    if pattern is None:
        return
    following = with_other_offsets(request, data.draw)
    sent = bytearray(b"head" + encode(following, version))
    for _ in range(data.draw(st.integers(0, 2))):
        sent[data.draw(st.integers(4, len(sent) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(sent[: len(sent) - data.draw(st.sampled_from((0, 0, 0, 1, 5)))])
    found = pattern.read(version, cut, 4, _IMAGE, _NOW_MS)
    if found is not None:
        assert found == changes_of(decode(OffsetCommitRequest, version, cut, 4))


@given(request=_requests(), version=st.integers(6, 10), data=st.data())
@effort(50)
def test_a_pattern_reads_the_next_commit_of_the_same_partitions(
    request: OffsetCommitRequest, version: int, data: st.DataObject
) -> None:
    pattern = pattern_of(request, version)
    if pattern is not None:
        sent = b"head" + bytes(encode(with_other_offsets(request, data.draw), version))
        following = decode(OffsetCommitRequest, version, sent, 4)
        assert pattern.read(version, memoryview(sent), 4, _IMAGE, _NOW_MS) == changes_of(following)
        assert pattern.read(version, sent, 4, _IMAGE + 1, _NOW_MS) is None, "the topics may be others now"
        assert pattern.read(version - 1, sent, 4, _IMAGE, _NOW_MS) is None


_IMAGE = 17
_NOW_MS = 1_700_000_000_000


class Runtime:
    is_stopped = False


def changes_of(request: OffsetCommitRequest) -> list[OffsetChanges]:
    return [
        OffsetChanges.of(request.group_id, t.name, t.name.encode()[:16].ljust(16), t.partitions, _NOW_MS)
        for t in request.topics
    ]


def pattern_of(request: OffsetCommitRequest, version: int) -> CommitTemplate | None:
    """Of the request as its bytes say it."""
    try:
        request = decode(OffsetCommitRequest, version, encode(request, version), 0)
    except EncodeError:
        return None
    asked = CommitRequest(version, request, RequestTimes("OffsetCommit"))
    changes = changes_of(request)
    if not CommitTemplate.fits(asked, changes):
        return None
    return CommitTemplate(asked, request, changes, Runtime(), _IMAGE)  # type: ignore[arg-type]


def with_other_offsets(request: OffsetCommitRequest, draw: Any) -> OffsetCommitRequest:
    drawn = draw(st.lists(st.tuples(INT64, INT32), min_size=1, max_size=5))
    return with_offsets(request, cycle(drawn))


def test_a_pattern_of_a_stopped_coordinator_reads_nothing() -> None:
    topic = OffsetCommitRequestTopic(name="orders", partitions=(_ONE, _ONE))
    request = OffsetCommitRequest(group_id="group", member_id="member", topics=(topic,))
    pattern = pattern_of(request, 9)
    assert pattern is not None
    sent = bytes(encode(request, 9))
    assert pattern.read(9, sent, 0, _IMAGE, _NOW_MS) is not None
    pattern.runtime.is_stopped = True
    assert pattern.read(9, sent, 0, _IMAGE, _NOW_MS) is None
