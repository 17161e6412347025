"""What is written by hand for committed offsets is what the declared schemas write."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from strandline.wire.record_batch import Record, build_batch, build_small_batch
from strandline.wire.records import offset_commits
from strandline.wire.records.offsets_framing import encode_key, encode_value
from strandline.wire.records.offsets_topic import OffsetCommitKey, OffsetCommitValue

from .effort import effort

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
TEXT = st.text(max_size=50)


@given(group=TEXT, topic=TEXT, partition=INT32)
@effort(50)
def test_keys_are_those_of_the_schema(group: str, topic: str, partition: int) -> None:
    expected = encode_key(OffsetCommitKey(group=group, topic=topic, partition=partition))
    assert offset_commits.key(offset_commits.key_prefix(group, topic), partition) == expected


@given(offset=INT64, epoch=INT32, metadata=TEXT, commit_ms=INT64)
@effort(50)
def test_values_are_those_of_the_schema(offset: int, epoch: int, metadata: str, commit_ms: int) -> None:
    value = OffsetCommitValue(
        offset=offset, leader_epoch=epoch, metadata=metadata, commit_timestamp=commit_ms
    )
    assert offset_commits.value(offset, epoch, metadata, commit_ms) == encode_value(value)


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
