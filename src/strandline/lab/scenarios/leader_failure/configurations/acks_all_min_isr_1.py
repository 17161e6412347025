"""Configuration 3 of the leader failure analysis: acks=all is as strong as the set of in-sync replicas."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(1000)
    await lab.until_replicated()
    lab.stop_replication()
    await lab.send(1, waits=False)
    await lab.sleep(10)
    lab.note("the producer still waits: all three replicas count as in sync")
    await lab.until_in_sync(1)
    await lab.until_told()
    lab.kill(lab.leader)
    await lab.until_offline()
    await lab.sleep(10)
    await lab.start(1)
    await lab.until_leader(1)


SCENARIO = LabScenario(
    title="acks=all with min.insync.replicas=1: one replica in sync is enough",
    source="Leader failure: Configuration 3",
    claim="acks=all with min.insync.replicas=1 is no safer than acks=1: the record is lost.",
    finding=(
        "acks=all waits for every in-sync replica, whatever the minimum is. The leader alone is enough "
        "only after the others have left the ISR (replica.lag.time.max.ms, 30 s). Then no other replica "
        "may lead: the partition is offline until the leader is back, and the record is lost only with "
        "its disk or by an unclean election."
    ),
    play=play,
    topic={"min.insync.replicas": "1"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-1000", leader=1, leader_epoch=2),
)
