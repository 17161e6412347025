"""acks=all with a minimum of three of three: one dead follower stops writes."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(100)
    await lab.until_replicated()
    lab.kill(3)
    await lab.until_in_sync(1, 2)
    await lab.send(10)


SCENARIO = LabScenario(
    title="acks=all, RF 3, min.insync.replicas=3: one follower dies",
    source="Replication: acks table, all/3/3",
    claim="No broker may fail: writes stop with the first one.",
    finding=(
        "The error of the leader is NOT_ENOUGH_REPLICAS. The application is told of a timeout, because "
        "the producer tries for delivery.timeout.ms."
    ),
    play=play,
    topic={"min.insync.replicas": "3"},
    producer={"acks": "all"},
    expected=Outcome(
        acknowledged="0-99", failed="100-109", errors="REQUEST_TIMED_OUT", leader=1, leader_epoch=0
    ),
)
