"""Scenario 4 of the analysis of replication: all brokers are restarted in good order, one after the other."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(10)
    longest = 0.0
    for broker in (1, 2, 3):
        stopping = lab.begin(lab.stop(broker))
        while not stopping.done():
            longest = max(longest, await lab.time_to_send(10))
        await lab.start(broker)
        longest = max(longest, await lab.time_to_send(10))
        await lab.until_in_sync()
    lab.measure("longest wait for an acknowledgement", longest)


SCENARIO = LabScenario(
    title="Scenario 4: the whole cluster is restarted, broker by broker",
    source="Replication: Failure scenarios, 4",
    claim="With controlled shutdown leadership moves first: no downtime.",
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    bounds={"longest wait for an acknowledgement": (0.0, 1.0)},
    expected=Outcome(acknowledged="0-219", leader=1, leader_epoch=2),
)
