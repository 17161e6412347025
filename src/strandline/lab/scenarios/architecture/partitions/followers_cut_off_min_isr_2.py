"""The leader is cut off from its followers, and not from the controller; two replicas are needed."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.architecture.partitions._followers import cut_off_the_followers


async def play(lab: Lab) -> None:
    await cut_off_the_followers(lab)
    lab.heal()
    await lab.until_told()


SCENARIO = LabScenario(
    title="Network partition: followers are cut off from the leader, min.insync.replicas=2",
    source="Architecture: Network partition handling",
    claim="The leader rejects writes.",
    finding=(
        "It does after 30 s (replica.lag.time.max.ms), when it is alone in the ISR. The producer tries on, "
        "and has its acknowledgements when the links work again."
    ),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    facts={"acknowledged before the links work": "0"},
    expected=Outcome(acknowledged="0-109", leader=1, leader_epoch=0),
)
