"""Recovery time: the dead broker leads 4,000 partitions."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.architecture.recovery._partitions import die_with


async def play(lab: Lab) -> None:
    await die_with(lab, 3999)


SCENARIO = LabScenario(
    title="Recovery of 4,000 partitions",
    source="Architecture: Broker failure with ISR",
    claim="Recovery takes 5-30 s, by the number of partitions to reassign.",
    finding=(
        "All elections are one decision of the controller, written as one batch of its log: their number "
        "costs work, which this simulation does not count, and no more round trips."
    ),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    bounds={"until all partitions have a leader": (0.0, 0.5), "until all leaders lead": (0.0, 0.5)},
    expected=Outcome(acknowledged="0-19", leader=2, leader_epoch=1),
)
