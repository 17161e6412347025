"""The failures that settings are checked against: what breaks, when, and for how long.

Steps never expect a certain end: with some settings writes go on, with others they wait, fail or are lost. A broker
that breaks is back after BACK_SECONDS, which is longer than delivery.timeout.ms is by default.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from strandline.lab.check.settings import CheckedSettings
from strandline.lab.lab import Lab

BACK_SECONDS: Final = 180.0
_REPLICATED_SECONDS: Final = 60.0
_WHOLE_SECONDS: Final = 120.0
# Figures of the steps.
WRITES_WAIT: Final = "writes wait"
READS_STOP: Final = "reads stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    name: str
    title: str
    play: Callable[[Lab], Awaitable[None]]
    applies: Callable[[CheckedSettings], bool] = lambda settings: True
    is_several: bool = False  # more than one thing fails at once
    is_of_consumer: bool = False
    is_of_transactions: bool = False
    controllers: int = 1
    partitions: int = 1
    seeds: int = 1  # more where chance decides what a disk keeps


# Shared steps


async def _begin(lab: Lab, count: int = 100) -> None:
    """Records that all replicas have. With acks=0 nobody says when they are there."""
    await lab.send(count)
    await lab.wait_for(lambda: lab.view.replicas[0].end_offset > 0, _REPLICATED_SECONDS)
    await lab.wait_for(lab.is_replicated, _REPLICATED_SECONDS)


async def _write_through(lab: Lab, *broken: int, count: int = 5) -> None:
    """Writes while something is broken, until the producer was told of all; brokers return in time."""
    began = lab.now()
    sending = lab.begin(lab.send(count))
    away = lab.begin(_return(lab, *broken))
    await sending
    await lab.until_told()
    lab.measure(WRITES_WAIT, lab.now() - began)
    await away
    await _end(lab)


async def _return(lab: Lab, *brokers: int) -> None:
    await lab.sleep(BACK_SECONDS)
    lab.heal()
    for broker in brokers:
        if lab.stage.is_running(broker):
            lab.resume(broker)
        else:
            await lab.start(broker)


async def _end(lab: Lab) -> None:
    """Gives the cluster time to be whole again, as far as it can."""
    await lab.wait_for(
        lambda: len(lab.view.in_sync) == len(lab.view.replicas) and lab.is_replicated(), _WHOLE_SECONDS
    )


# One thing fails


async def _leader_crashes(lab: Lab) -> None:
    """The last records are on the leader only: the links to its followers fail a second before it does."""
    await _begin(lab)
    if lab.followers:
        lab.stop_replication()
    await lab.send(10, waits=False)
    await lab.sleep(1)
    lab.kill(1)
    await _write_through(lab, 1)


async def _leader_falls_silent(lab: Lab) -> None:
    await _begin(lab)
    lab.pause(1)
    await _write_through(lab, 1)


async def _acknowledgement_is_lost(lab: Lab) -> None:
    await _begin(lab)
    lab.silence(1, "producer")
    await lab.send(10, waits=False)
    await lab.sleep(1)
    await lab.wait_for(lab.is_replicated, _REPLICATED_SECONDS)
    lab.kill(1)
    await _write_through(lab, 1)


async def _follower_crashes(lab: Lab) -> None:
    await _begin(lab)
    follower = lab.followers[-1]
    lab.kill(follower)
    await _write_through(lab, follower)


async def _disk_is_lost(lab: Lab) -> None:
    await _begin(lab)
    lab.kill(1)
    lab.replace_disk(1)
    await _write_through(lab, 1)


async def _leader_is_cut_off(lab: Lab) -> None:
    """A producer is on its side of the network, another one on the other side."""
    await _begin(lab)
    await lab.producer("stranded", {"bootstrap.servers": lab.stage.address(1)})
    lab.isolate(1)
    lab.cut("producer", 1)
    stranded = lab.begin(lab.send(5, name="stranded"))
    await _write_through(lab)
    await stranded


async def _controller_dies(lab: Lab) -> None:
    await _begin(lab)
    lab.kill(lab.controller)
    await _write_through(lab)


async def _producer_dies(lab: Lab) -> None:
    await _begin(lab)
    await lab.send(10, waits=False)
    await lab.crash("producer")
    await lab.sleep(5)


# Several things fail


async def _in_sync_replicas_crash(lab: Lab) -> None:
    """One replica has lagged for so long that it left the ISR; then all others crash."""
    await _begin(lab)
    laggard = lab.followers[-1]
    lab.stop_replication(laggard)
    sending = lab.begin(lab.send(10))
    await lab.wait_for(lambda: laggard not in lab.view.in_sync, _REPLICATED_SECONDS)
    await lab.sleep(1)
    others = [each.broker for each in lab.view.replicas if each.broker != laggard]
    for broker in others:
        lab.kill(broker)
    await _write_through(lab, *others)
    await sending


async def _last_copy_is_lost(lab: Lab) -> None:
    """The followers have lagged until the leader alone is in sync; then its disk is lost."""
    await _begin(lab)
    lab.stop_replication()
    sending = lab.begin(lab.send(10))
    await lab.wait_for(lambda: lab.view.in_sync == (1,), _REPLICATED_SECONDS)
    await lab.sleep(1)
    lab.kill(1)
    lab.replace_disk(1)
    await _write_through(lab, 1)
    await sending


async def _power_fails(lab: Lab) -> None:
    await _begin(lab)
    await lab.send(10)
    for broker in lab.stage.brokers:
        lab.cut_power(broker)
    await _write_through(lab, *lab.stage.brokers)


# Consumers


async def _consumer_crashes(lab: Lab) -> None:
    await _read(lab)
    await _commit(lab)
    await lab.send(50)
    await lab.until_seen(150)
    await lab.crash("consumer")
    await _take_over(lab)


async def _read(lab: Lab) -> None:
    """A consumer of all partitions reads 100 records that are sent when it is there."""
    await lab.consume()
    await lab.until_assigned("consumer")
    await lab.sleep(1)
    await lab.send(100)
    await lab.until_seen(100)


async def _commit(lab: Lab) -> None:
    """By the application, or by time."""
    if lab.scenario.consumer.get("enable.auto.commit", "true") == "true":
        await lab.sleep(float(lab.scenario.consumer.get("auto.commit.interval.ms", "5000")) / 1000 + 1)
    else:
        await lab.commit()


async def _take_over(lab: Lab) -> None:
    """Another consumer goes on; measured until it has the partition."""
    began = lab.now()
    second = await lab.consume("second")
    await lab.wait_for(lambda: bool(second.assigned), _WHOLE_SECONDS)
    lab.measure(READS_STOP, lab.now() - began)
    await lab.sleep(1)
    await lab.send(1)
    await lab.sleep(5)


async def _offsets_are_lost(lab: Lab) -> None:
    """The coordinator's disk is lost, and with it whatever only it had."""
    await _read(lab)
    await _commit(lab)
    await lab.crash("consumer")
    await lab.send(50)
    coordinator = lab.coordinator
    lab.kill(coordinator)
    lab.replace_disk(coordinator)
    await lab.sleep(60)
    await lab.start(coordinator)
    await _end(lab)
    await _take_over(lab)


async def _group_has_no_offsets(lab: Lab) -> None:
    """The group reads for the first time, or its offsets expired."""
    await lab.send(100)
    await _take_over(lab)


async def _transaction_is_aborted(lab: Lab) -> None:
    await lab.consume()
    await lab.until_assigned("consumer")
    await lab.sleep(1)
    await lab.begin_transaction()
    await lab.send(10)
    await lab.sleep(1)
    await lab.abort_transaction()
    await lab.begin_transaction()
    await lab.send(10)
    await lab.commit_transaction()
    await lab.wait_for(lambda: len(lab.consumers["consumer"].seen) >= 10, _WHOLE_SECONDS)
    await lab.sleep(5)


async def _member_joins(lab: Lab) -> None:
    await _read(lab)
    await _commit(lab)
    await lab.send(50)
    await lab.until_seen(150)
    given = lab.scenario.consumer.get("group.instance.id")
    await lab.consume("second", {} if given is None else {"group.instance.id": f"{given}-second"})
    await lab.until_assigned("consumer", "second")
    lab.measure(READS_STOP, lab.consumers["consumer"].stalled_seconds)
    await lab.send(100)
    await lab.sleep(10)


def _has_followers(settings: CheckedSettings) -> bool:
    return settings.replication_factor > 1


FAILURES: Final = (
    Failure(
        name="leader-crashes",
        title="the leader crashes before its followers have the last records",
        play=_leader_crashes,
    ),
    Failure(
        name="leader-falls-silent",
        title="the leader's host falls silent for 3 minutes",
        play=_leader_falls_silent,
    ),
    Failure(
        name="acknowledgement-is-lost",
        title="records are written, and the acknowledgement does not arrive",
        play=_acknowledgement_is_lost,
    ),
    Failure(
        name="follower-crashes",
        title="a follower is away for 3 minutes",
        play=_follower_crashes,
        applies=_has_followers,
    ),
    Failure(
        name="disk-is-lost",
        title="the leader's disk is lost",
        play=_disk_is_lost,
    ),
    Failure(
        name="leader-is-cut-off",
        title="the leader and a producer are cut off from all others for 3 minutes",
        play=_leader_is_cut_off,
    ),
    Failure(
        name="controller-dies",
        title="the active controller dies",
        play=_controller_dies,
        controllers=3,
    ),
    Failure(
        name="producer-dies",
        title="the producer dies with records in its buffer",
        play=_producer_dies,
    ),
    Failure(
        name="consumer-crashes",
        title="a consumer crashes 50 records after its commit",
        play=_consumer_crashes,
        is_of_consumer=True,
    ),
    Failure(
        name="offsets-are-lost",
        title="the disk of the group's coordinator is lost",
        play=_offsets_are_lost,
        is_of_consumer=True,
    ),
    Failure(
        name="group-has-no-offsets",
        title="the group reads for the first time, or its offsets expired",
        play=_group_has_no_offsets,
        is_of_consumer=True,
    ),
    Failure(
        name="member-joins",
        title="a second consumer joins the group",
        play=_member_joins,
        is_of_consumer=True,
        partitions=6,
    ),
    Failure(
        name="transaction-is-aborted",
        title="a transaction is aborted",
        play=_transaction_is_aborted,
        applies=lambda settings: "transactional.id" in settings.producer,
        is_of_consumer=True,
        is_of_transactions=True,
    ),
    Failure(
        name="in-sync-replicas-crash",
        title="all in-sync replicas crash, and one that lags is left",
        play=_in_sync_replicas_crash,
        applies=_has_followers,
        is_several=True,
    ),
    Failure(
        name="last-copy-is-lost",
        title="all followers lag, and the leader's disk is lost",
        play=_last_copy_is_lost,
        applies=_has_followers,
        is_several=True,
    ),
    Failure(
        name="power-fails",
        title="all brokers lose their power in the same moment",
        play=_power_fails,
        is_several=True,
        seeds=4,
    ),
)
