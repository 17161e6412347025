"""Offsets and places that are kept in moments when nobody seems to want them."""

from __future__ import annotations

from strandline.base.errors import ErrorCode
from tests.group_requests import commit, consumer_heartbeat, consumer_join, join, leave, owned
from tests.spec.groups import Classic
from tests.unit.groups.machine import SETTINGS, Machine, topic_id

RETENTION_MS = SETTINGS.offsets_retention_ms


def group_with_an_old_offset() -> Classic:
    """Its one member lives, and committed longer ago than offsets are kept."""
    group = Classic()
    group.form("a")
    member_id = group.ids["a"]
    assert group.machine.commit(commit("g", {0: 7}, member=member_id, generation=group.generation)) == [0]
    group.machine.ms += RETENTION_MS + 1
    return group


def is_there_after_expiry(machine: Machine) -> bool:
    machine.run(machine.shard.expire_offsets(machine.now()))
    return machine.shard.offsets.get("g", "orders", 0) is not None


def test_offsets_of_what_a_member_subscribes_to_are_kept_however_old_they_are() -> None:
    assert is_there_after_expiry(group_with_an_old_offset().machine)


def test_when_everyone_has_left_offsets_are_kept_for_their_time_from_then_on() -> None:
    group = group_with_an_old_offset()
    machine = group.machine
    machine.send(leave("g", group.ids["a"]))
    machine.ms += RETENTION_MS - 1
    assert is_there_after_expiry(machine)
    machine.ms += 1
    assert not is_there_after_expiry(machine)


def test_offsets_stay_while_a_group_waits_for_a_member_that_has_asked_to_join() -> None:
    """All others have left: their topics are nobody's, but not for long. (ClassicGroup.offsetExpirationCondition and
    isSubscribedToTopic)"""
    group = group_with_an_old_offset()
    machine = group.machine
    machine.send(join("g"))  # is given an id, and has to come back with it
    machine.send(leave("g", group.ids["a"]))
    found = machine.shard.groups["g"]
    assert (found.state, len(found.members)) == ("PreparingRebalance", 0)
    assert is_there_after_expiry(machine)
    _, codes = machine.shard.offset_requests.delete("g", [("orders", 0)])
    assert codes == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]


def test_a_group_that_has_a_member_is_not_deleted_nor_are_offsets_of_what_it_subscribes_to() -> None:
    machine = group_with_an_old_offset().machine
    assert machine.shard.delete_group("g")[1] == ErrorCode.NON_EMPTY_GROUP
    _, codes = machine.shard.offset_requests.delete("g", [("orders", 0)])
    assert codes == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]


def test_a_static_member_that_is_away_has_its_session_to_come_back_also_after_a_failover() -> None:
    """It was to let go of partitions when it went, and has by that."""
    machine = Machine()
    joined = machine.ask(consumer_join("g", "a", instance="i", rebalance_timeout_ms=100))
    everything = owned({topic_id("orders"): range(4)})
    beat = {"instance_id": "i", "topic_partitions": everything}
    epoch = machine.ask(consumer_heartbeat("g", "a", joined.member_epoch, **beat)).member_epoch
    machine.ask(consumer_join("g", "b"))
    assert machine.ask(consumer_heartbeat("g", "a", epoch, **beat)).assignment is not None
    machine.ask(consumer_heartbeat("g", "a", -2, instance_id="i"))
    machine.fail_over()
    machine.pass_time(1000)
    assert "a" in machine.shard.groups["g"].members
