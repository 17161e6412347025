"""Below min.insync.replicas for longer than delivery.timeout.ms, the producer is told."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(100)
    await lab.until_replicated()
    lab.kill(2)
    lab.kill(3)
    await lab.until_in_sync(1)
    await lab.send(10)


SCENARIO = LabScenario(
    title="The in-sync replicas stay below the minimum",
    source="Replication: min.insync.replicas",
    claim="Writes fail with NotEnoughReplicas.",
    finding=(
        "The producer tries again until delivery.timeout.ms (120 s) is over, and then tells of the "
        "timeout, with the reason in its message."
    ),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(
        acknowledged="0-99", failed="100-109", errors="REQUEST_TIMED_OUT", leader=1, leader_epoch=0
    ),
)
