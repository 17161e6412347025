"""The ten faults, each for consumers, for producers, or for both.

A function gets the stage when the program is at work: a consumer has dealt with some records, a producer has some
acknowledged and waits at a barrier, which is released when the function returns. It raises `Skipped` where the fault
does not concern the program.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple

from strandline.client.admin.groups import GroupDescription
from strandline.client.consumer.group.assignors import RangeAssignor
from strandline.client.consumer.group.sticky import BUILT_IN
from strandline.client.errors import KafkaError
from strandline.client.sync import Consumer, Producer
from strandline.testing.torture.stage import CONSUMER, PRODUCER, Skipped, Stage

_OFFSETS: Final = "__consumer_offsets"
_TRANSACTIONS: Final = "__transaction_state"
_BACKLOG: Final = 40
_JOIN_S: Final = 20.0
_SLOW_MS: Final = 800
_SLOW_S: Final = 4.0
_DOWN_S: Final = 1.5


class Trial(NamedTuple):
    name: str
    what: str  # one line for people
    strike: Callable[[Stage], None]
    roles: tuple[str, ...] = (CONSUMER, PRODUCER)


def _rebalance(stage: Stage) -> None:
    """Another member joins in the middle of a batch, takes partitions, deals with nothing and leaves.

    The program hears of it seconds later. It gets new records all the time until then, so that it is never idle.
    """
    group = _stable_group(stage)
    stage.write_backlog(_BACKLOG)
    stage.mark()
    settings = {"group_protocol": "consumer"} if group.type == "consumer" else _as_others(group)
    with Consumer(
        stage.cluster.client_settings, group_id=stage.group, enable_auto_commit=False, **settings
    ) as guest:
        guest.subscribe([stage.topic])
        deadline = time.monotonic() + _JOIN_S
        while not guest.assignment():
            if time.monotonic() > deadline:
                raise Skipped(f"another member was not given a partition within {_JOIN_S:g} s")
            stage.write_backlog(_BACKLOG)
            try:
                guest.poll(0.1)
            except KafkaError as error:
                if not error.retriable:
                    raise Skipped(f"another member cannot join the group: {error}") from error
        stage.write_burst()
        time.sleep(0.5)


def _stable_group(stage: Stage) -> GroupDescription:
    """Returns the program's group once its members have agreed upon an assignment."""
    deadline = time.monotonic() + _JOIN_S
    while True:
        with suppress(KafkaError):  # it does not exist yet, or its coordinator moves
            group = stage.admin.describe_groups([stage.group])[stage.group]
            if group.state.lower() == "stable":
                return group
        if time.monotonic() > deadline:
            raise Skipped("the program reads without a group, so no member can join it")
        stage.write_backlog(_BACKLOG)
        time.sleep(0.1)


def _as_others(group: GroupDescription) -> dict[str, Any]:
    """Returns settings of a member whose strategy has the name that the others agreed upon. Their leader assigns."""
    name = group.assignor
    return {
        "session_timeout_ms": 6000,
        "partition_assignment_strategy": [name if name in BUILT_IN else NamedAssignor(name)],
    }


class NamedAssignor(RangeAssignor):
    """An assignor of a client that has its own names, such as KafkaJS. It is never the leader's."""

    def __init__(self, name: str) -> None:
        self.name = name


def _lost_response(stage: Stage) -> None:
    if stage.role == PRODUCER:
        stage.mark()
        lost = stage.on_all("drop_response", api="Produce", topic=stage.topic)
        stage.on_all("disconnect", api="EndTxn", transactional_id=stage.transactional_id, applied=True)
    else:
        lost = stage.on_all("drop_response", api="OffsetCommit", group=stage.group)
        stage.write_burst()
    stage.release()
    if not stage.wait(lambda: any(fault.fired for fault in lost), 10):
        raise Skipped(
            "the program commits nothing to its group" if stage.role == CONSUMER else "it wrote no more"
        )
    stage.mark()
    time.sleep(0.5)
    for fault in lost:
        fault.clear()  # the silent connection ends, and the client has to ask again


def _duplicate_delivery(stage: Stage) -> None:
    """A consumer gets records again; a producer is told to send a batch again."""
    if stage.role == PRODUCER:
        stage.mark()
        stage.on_all("error", api="Produce", error="NOT_ENOUGH_REPLICAS", topic=stage.topic, times=2)
        stage.on_all("disconnect", api="Produce", topic=stage.topic, applied=True, nth=3)
        return
    stage.on_all("drop_request", api="OffsetCommit", group=stage.group, times=None)
    before = stage.count
    stage.write_burst()
    stage.wait_said(before + 5, 4)
    stage.mark()
    stage.kill_program()
    for node in stage.cluster.nodes:
        node.faults.clear()
    stage.program.start()


def _leader_change(stage: Stage) -> None:
    """The leader is cut off from its followers, goes on for a second, and dies."""
    leader = stage.leader()
    stage.mark()
    if stage.role == PRODUCER:
        stage.cluster.cut_off(leader.node_id)
        stage.release()
        time.sleep(1.0)
    leader.kill()
    stage.cluster.heal()
    if stage.role == CONSUMER:
        stage.write_burst()
    time.sleep(_DOWN_S)
    leader.start()


def _fenced_producer(stage: Stage) -> None:
    """Somebody else takes the program's transactional id."""
    seen = stage.on_all("delay", api="Produce", transactional_id=stage.transactional_id, ms=1, times=None)
    stage.release()
    if not stage.wait(lambda: any(fault.seen for fault in seen), 5):
        raise Skipped("the program does not use the transactional id that it was given")
    stage.mark()
    with Producer(stage.cluster.client_settings, transactional_id=stage.transactional_id) as other:
        other.init_transactions()


def _poison_record(stage: Stage) -> None:
    stage.mark()
    stage.write_poison()
    stage.write_burst(2)


def _slow_broker(stage: Stage) -> None:
    stage.mark()
    slow = stage.on_all("delay", ms=_SLOW_MS, times=None)
    stage.release()
    if stage.role == CONSUMER:
        stage.write_burst()
    time.sleep(_SLOW_S)
    for fault in slow:
        fault.clear()


def _coordinator_move(stage: Stage) -> None:
    """The coordinator of the group, or of the transactional id, dies and comes back."""
    if stage.role == PRODUCER and _TRANSACTIONS not in stage.admin.list_topics(include_internal=True):
        raise Skipped("the program uses no transactions")
    name = (_OFFSETS, stage.group) if stage.role == CONSUMER else (_TRANSACTIONS, stage.transactional_id)
    coordinator = stage.coordinator(*name)
    stage.mark()
    coordinator.kill()
    stage.release()
    if stage.role == CONSUMER:
        stage.write_burst()
    time.sleep(_DOWN_S)
    coordinator.start()


def _retention(stage: Stage) -> None:
    """The program stands still while records that it has not read are deleted."""
    stage.program.pause()
    stage.write_burst(3)
    stage.mark()
    stage.admin.delete_records({place: end - 10 for place, end in stage.ends().items()})
    stage.program.resume()


def _full_restart(stage: Stage) -> None:
    """All nodes die at once, a consumer with them, in the middle of a batch; all come back."""
    if stage.role == CONSUMER:
        before = stage.count
        stage.write_burst(2)
        stage.wait_said(before + 5, 10)
        stage.kill_program()
    stage.mark()
    for node in stage.cluster.nodes:
        node.kill()
    for node in stage.cluster.nodes:
        node.launch()
    for node in stage.cluster.nodes:
        node.wait_until_ready()
    if stage.role == CONSUMER:
        stage.program.start()


TRIALS: Final = (
    Trial("rebalance", "another member joins in the middle of a batch", _rebalance, (CONSUMER,)),
    Trial("lost-commit-response", "a commit or write is applied, and its response is lost", _lost_response),
    Trial("duplicate-delivery", "records come again; a write has to be sent again", _duplicate_delivery),
    Trial("leader-change", "the leader of a partition dies", _leader_change),
    Trial("fenced-producer", "another producer takes the transactional id", _fenced_producer, (PRODUCER,)),
    Trial("poison-record", "a record that cannot be decoded", _poison_record, (CONSUMER,)),
    Trial("slow-broker", "every response comes late for some seconds", _slow_broker),
    Trial("coordinator-move", "the coordinator dies", _coordinator_move),
    Trial("retention-overtaking", "records are deleted before they are read", _retention, (CONSUMER,)),
    Trial("full-restart", "all nodes die at once, a consumer too", _full_restart),
)
BY_NAME: Final = {trial.name: trial for trial in TRIALS}
