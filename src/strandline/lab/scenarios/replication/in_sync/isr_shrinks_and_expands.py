"""A follower that cannot fetch leaves the in-sync replicas, and comes back when it has caught up."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(100)
    await lab.until_replicated()
    lab.stop_replication(3)
    await lab.send(100)
    await lab.until_in_sync(1, 2)
    await lab.send(100)
    lab.heal()
    await lab.until_in_sync()
    await lab.until_replicated()


SCENARIO = LabScenario(
    title="The set of in-sync replicas shrinks and expands",
    source="Replication: ISR",
    claim=(
        "A replica that lags for longer than replica.lag.time.max.ms (30 s) leaves the ISR, and joins it "
        "again when it has caught up."
    ),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-299", leader=1, leader_epoch=0),
)
