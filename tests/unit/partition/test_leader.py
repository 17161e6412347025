"""The leader's three rules."""

from __future__ import annotations

import pytest

from strandline.base.errors import ErrorCode, KafkaError
from strandline.partition.leader import PartitionLeader, high_watermark


def leader(
    *, replicas: tuple[int, ...] = (1,), in_sync: tuple[int, ...] = (1,), end: int = 10, high: int = 10
) -> PartitionLeader:
    return PartitionLeader(
        node_id=1, epoch=0, replicas=replicas, in_sync=in_sync, end_offset=end, high_watermark=high
    )


def test_high_watermark_is_the_smallest_end_offset_in_sync() -> None:
    assert high_watermark([7, 3, 9]) == 3


def test_alone_the_leader_s_own_end_is_the_high_watermark() -> None:
    alone = leader()
    assert alone.appended(12, 1)
    assert alone.high_watermark == 12
    assert not alone.appended(12, 1), "nothing advanced"


def test_follower_in_sync_holds_the_high_watermark_until_it_is_heard_of() -> None:
    two = leader(replicas=(1, 2), in_sync=(1, 2))
    assert not two.appended(12, 1)
    assert two.high_watermark == 10


def test_follower_out_of_sync_does_not_hold_back_the_high_watermark() -> None:
    two = leader(replicas=(1, 2), in_sync=(1,))
    assert two.appended(12, 1)
    assert two.high_watermark == 12


def test_high_watermark_never_goes_back() -> None:
    two = leader(replicas=(1, 2), in_sync=(1, 2), end=10, high=10)
    two.appended(10, 1)
    assert two.high_watermark == 10, "the follower's unknown end must not lower it"


def test_high_watermark_stands_still_below_the_effective_minimum() -> None:
    shrunk = leader(replicas=(1, 2, 3), in_sync=(1,))
    assert not shrunk.appended(12, 2)
    assert shrunk.high_watermark == 10
    assert shrunk.appended(12, 1)


@pytest.mark.parametrize(
    ("replicas", "in_sync", "minimum", "accepted"),
    [
        ((1,), (1,), 1, True),
        ((1,), (1,), 3, True),
        ((1, 2), (1,), 2, False),
        ((1, 2), (1, 2), 2, True),
        ((1, 2, 3), (1, 2), 5, False),
        ((1, 2, 3), (1,), 1, True),
    ],
)
def test_acks_all_needs_the_smaller_of_the_minimum_and_the_number_of_replicas(
    replicas: tuple[int, ...], in_sync: tuple[int, ...], minimum: int, accepted: bool
) -> None:
    one = leader(replicas=replicas, in_sync=in_sync)
    if accepted:
        one.check_acks_all(minimum)
        return
    with pytest.raises(KafkaError) as refused:
        one.check_acks_all(minimum)
    assert refused.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert refused.value.retriable


def test_invariants_hold_and_are_checked() -> None:
    one = leader()
    one.check_invariants()
    one.high_watermark = 11
    with pytest.raises(AssertionError):
        one.check_invariants()
    with pytest.raises(AssertionError, match="in sync with itself"):
        leader(replicas=(1, 2), in_sync=(2,))
    with pytest.raises(AssertionError):
        one.appended(9, 1)
