"""Checks check; only `apply` changes what the log says."""

from __future__ import annotations

from strandline.base.errors import ErrorCode
from strandline.groups.classic.group import ClassicGroup
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.members import Caller
from strandline.groups.result import CoordinatorResult, WrittenChange
from tests.group_requests import consumer_heartbeat, consumer_join, join, sync
from tests.spec.groups import Classic
from tests.unit.groups.machine import Machine, Token


def test_the_check_of_a_commit_makes_no_group() -> None:
    machine = Machine()
    requests = machine.shard.offset_requests
    requests.check_commit("g", "", None, -1, [], 9)
    requests.check_commit_in_transaction("g", "", None, -1, [])
    assert machine.shard.groups == {}
    requests.commit_accepted("g", "", machine.now())
    assert list(machine.shard.groups) == ["g"]


def test_the_check_of_a_commit_is_no_heartbeat_and_its_acceptance_is() -> None:
    group = Classic()
    group.form("a")
    machine, member_id = group.machine, group.ids["a"]
    requests, timers = machine.shard.offset_requests, machine.shard.timers
    before = timers.next_deadline()
    machine.ms += 1000
    requests.check_commit("g", member_id, None, group.generation, [], 9)
    assert timers.next_deadline() == before
    requests.commit_accepted("g", member_id, machine.now())
    machine.pass_time(9_500)
    assert member_id in machine.shard.groups["g"].members


def empty_consumer_group() -> Machine:
    machine = Machine()
    machine.ask(consumer_join("g", "m"))
    machine.ask(consumer_heartbeat("g", "m", -1))
    assert isinstance(machine.shard.groups["g"], ConsumerGroup)
    return machine


def classic_join(machine: Machine, token: Token) -> CoordinatorResult:
    """Joins a client without a member id, by a version before KIP-394: it is in the group at once."""
    return machine.shard.join(join("g"), Caller("client", "/127.0.0.1", 3), token, machine.now())


def test_a_classic_group_takes_the_place_of_an_empty_consumer_group_when_that_is_written() -> None:
    machine, token = empty_consumer_group(), Token()
    result = classic_join(machine, token)
    assert isinstance(machine.shard.groups["g"], ConsumerGroup), "a decision is no change"
    machine.run(result)
    assert isinstance(machine.shard.groups["g"], ClassicGroup)
    machine.pass_time(60_000)
    assert token.response.error_code == ErrorCode.NONE


def test_an_empty_consumer_group_stays_if_its_end_cannot_be_written() -> None:
    machine, token = empty_consumer_group(), Token()
    result = classic_join(machine, token)
    assert result.on_written is not None
    assert result.on_written.change == WrittenChange.CLASSIC_IN_PLACE
    machine.run(machine.shard.write_failed(result.on_written, ErrorCode.NOT_COORDINATOR, machine.now()))
    assert isinstance(machine.shard.groups["g"], ConsumerGroup)
    assert token.response.error_code == ErrorCode.NOT_COORDINATOR
    machine.pass_time(60_000)
    assert machine.ask(consumer_join("g", "n")).error_code == ErrorCode.NONE


def test_an_assignment_is_the_members_when_its_record_is_applied() -> None:
    group = Classic()
    group.form("a")
    group.joined("a", group.send_join("a", protocols={"range": b"\0\1 another"}))
    machine, token = group.machine, Token()
    member = machine.shard.groups["g"].members[group.ids["a"]]
    request = sync("g", group.ids["a"], group.generation, {group.ids["a"]: b"assigned"})
    result = machine.shard.sync(request, token, machine.now())
    assert member.assignment != b"assigned"  # type: ignore[union-attr]
    machine.run(result)
    assert token.response.assignment == b"assigned"
