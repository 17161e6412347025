"""KIP-101/279 (truncation by epochs), KIP-497 (maximal in-sync set), KIP-966 (minimum) on the pure roles."""

from __future__ import annotations

import pytest

from strandline.base.errors import ErrorCode, KafkaError
from strandline.partition import follower
from strandline.partition.leader import PartitionLeader


def leader(*, in_sync: tuple[int, ...] = (1, 2, 3), end: int = 0) -> PartitionLeader:
    return PartitionLeader(
        node_id=1, epoch=5, replicas=(1, 2, 3), in_sync=in_sync, end_offset=end, high_watermark=0
    )


def fetched(role: PartitionLeader, replica: int, offset: int, minimum: int = 2) -> bool:
    return role.fetched(replica, offset, 0, 7, minimum, 0.0)


def test_high_watermark_is_the_smallest_end_over_the_in_sync_set() -> None:
    """The high watermark is min(1005, 1000, 1000)."""
    role = leader()
    role.appended(1005, 2)
    fetched(role, 2, 1000)
    assert role.high_watermark == 0, "one of them has not been heard of"
    fetched(role, 3, 1000)
    assert role.high_watermark == 1000


def test_follower_out_of_sync_does_not_hold_back_the_high_watermark() -> None:
    role = leader(in_sync=(1, 2))
    role.appended(10, 2)
    fetched(role, 2, 10)
    assert role.high_watermark == 10


def test_a_replica_that_is_being_taken_in_holds_the_high_watermark_already() -> None:
    """KIP-497: until the controller has responded, the maximal set counts."""
    role = leader(in_sync=(1, 2))
    role.appended(10, 2)
    fetched(role, 3, 5)
    role.propose((1, 2, 3))
    fetched(role, 2, 10)
    assert role.high_watermark == 5


def test_a_replica_that_is_being_taken_out_counts_until_that_is_decided() -> None:
    role = leader()
    role.appended(10, 2)
    fetched(role, 2, 10)
    role.propose((1, 2))
    assert role.high_watermark == 0
    role.decided((1, 2), 1, 2)
    assert role.high_watermark == 10


def test_proposal_outlives_the_late_news_of_the_change_before_it() -> None:
    """The response to an AlterPartition is faster than the image, which then tells the same again."""
    role = leader()
    role.appended(10, 2)
    fetched(role, 2, 10)
    role.propose((1, 2))
    role.decided((1, 2), 1, 2)
    fetched(role, 3, 10)
    role.propose((1, 2, 3))
    role.decided((1, 2), 1, 2)
    assert role.is_proposing, "it may have been taken"
    role.appended(20, 2)
    fetched(role, 2, 20)
    assert role.high_watermark == 10
    role.decided((1, 2, 3), 2, 2)
    assert not role.is_proposing


def test_high_watermark_stands_while_the_in_sync_set_is_below_the_minimum() -> None:
    """KIP-966: what is alone on the leader is not committed, and acks=all is refused."""
    role = leader(in_sync=(1,))
    assert not role.appended(10, 2)
    assert role.high_watermark == 0
    with pytest.raises(KafkaError) as refused:
        role.check_acks_all(2)
    assert refused.value.code == ErrorCode.NOT_ENOUGH_REPLICAS


def test_minimum_is_never_more_than_the_replicas() -> None:
    role = PartitionLeader(node_id=1, epoch=0, replicas=(1,), in_sync=(1,), end_offset=0, high_watermark=0)
    role.check_acks_all(2)
    assert role.appended(3, 2)


def test_follower_joins_only_from_the_start_of_the_leader_s_epoch() -> None:
    """KIP-101: one that has reached the high watermark of the past may lack what the new leader has."""
    role = PartitionLeader(
        node_id=1, epoch=5, replicas=(1, 2, 3), in_sync=(1, 3), end_offset=8, high_watermark=4
    )
    fetched(role, 2, 6)
    assert not role.may_join(2, is_alive=True)
    fetched(role, 2, 8)
    assert role.may_join(2, is_alive=True)
    assert not role.may_join(2, is_alive=False)


def test_truncation_goes_back_to_the_end_of_the_last_epoch_that_both_have() -> None:
    """KIP-279: the leader's last epoch before ours ended at 7; ours of it at 5, and then came one it never had."""
    own = ((1, 0), (2, 5))
    assert follower.truncation_point(own, 9, 1, 7) == 5
    assert follower.truncation_point(own, 9, 2, 7) == 7
    assert follower.truncation_point(own, 9, 0, 0) == 0


def test_truncation_does_not_ask_for_the_high_watermark() -> None:
    """KIP-101 scenario 1: a follower that has what the leader has keeps it, whatever its high watermark is."""
    assert follower.truncation_point(((1, 0),), 10, 1, 12) == 10
