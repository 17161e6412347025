"""The preferred leader returns, and leads again after the next look of the controller."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(10)
    await lab.until_replicated()
    await lab.stop(1)
    await lab.until_leader(2)
    await lab.start(1)
    await lab.until_in_sync()
    lab.note("broker 1 is preferred, and broker 2 leads")
    await lab.until_leader(1)
    await lab.send(10)


SCENARIO = LabScenario(
    title="Leadership drifts, and goes back to the preferred leader",
    source="Replication: Preferred leader",
    claim=(
        "The controller moves leadership back when leader.imbalance.check.interval.seconds (300 s) has "
        "passed."
    ),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-19", leader=1, leader_epoch=2),
)
