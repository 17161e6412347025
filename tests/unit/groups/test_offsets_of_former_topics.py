"""A topic that is made again under the name of one that was deleted: what was committed of that one is not its own."""

from __future__ import annotations

from strandline.groups.committed_offset import GroupOffset, OffsetChanges
from strandline.groups.committed_view import CommittedView
from strandline.wire.records.offset_commits import POSITION
from tests.group_requests import commit
from tests.unit.groups.machine import Machine


def machine_with_an_offset(offset: int = 7) -> Machine:
    machine = Machine()
    assert machine.commit(commit("g", {0: offset})) == [0]
    return machine


def make_anew(machine: Machine, topic: str = "orders") -> None:
    """While nobody could write down that its offsets go with it."""
    machine.topics.change(topic, 0)
    machine.topics.change(topic, 4)


def shown(machine: Machine, partition: int = 0) -> int | None:
    view = CommittedView(machine.shard.offsets, machine.topics)
    found = view.get("g", "orders", partition)
    listed = view.of_group("g").get("orders", {}).get(partition)
    assert found == listed
    return None if found is None else found.offset


def test_an_offset_of_a_topic_that_was_deleted_is_not_shown_for_the_next_one_of_its_name() -> None:
    machine = machine_with_an_offset()
    assert shown(machine) == 7
    make_anew(machine)
    assert shown(machine) is None


def test_a_new_coordinator_knows_which_topic_an_offset_is_of() -> None:
    machine = machine_with_an_offset()
    make_anew(machine)
    machine.fail_over()
    assert shown(machine) is None


def test_offsets_of_former_topics_are_deleted_and_those_of_the_present_one_stay() -> None:
    machine = Machine()
    machine.commit(commit("g", {0: 7, 1: 8}))
    make_anew(machine)
    machine.commit(commit("g", {1: 2}))
    assert (shown(machine, 0), shown(machine, 1)) == (None, 2)
    machine.run(machine.shard.offsets_without_topic())
    assert machine.shard.offsets.get("g", "orders", 0) is None
    assert shown(machine, 1) == 2
    assert not machine.shard.offsets_without_topic().entries, "once is enough"


def test_an_offset_that_a_transaction_commits_after_its_topic_was_created_again_is_not_shown() -> None:
    machine = machine_with_an_offset()
    offsets = machine.shard.offsets
    former = machine.topics.topic_id("orders")
    assert former is not None
    offsets.put_pending(1000, OffsetChanges("g", "orders", former, (0,), (POSITION.pack(9, -1),), None, 0))
    make_anew(machine)
    assert not machine.shard.offsets_without_topic().entries, "the end of the transaction decides first"
    offsets.end_transaction(1000, True)
    assert shown(machine) is None
    machine.run(machine.shard.offsets_without_topic())
    assert offsets.get("g", "orders", 0) is None


def test_an_offset_without_the_id_of_its_topic_counts_for_the_topic_of_its_name() -> None:
    """As versions before this one have written them."""
    machine = machine_with_an_offset()
    old = GroupOffset(5, -1, "", machine.ms)
    machine.shard.apply(*machine.shard.offsets.entry("g", "orders", 1, old))
    make_anew(machine)
    assert shown(machine, 1) == 5
