"""A follower stands still again and again: the ISR flaps, and acks=all waits."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(10)
    await lab.until_replicated()
    for pause in ("first pause", "second pause"):
        lab.pause(3)
        began = lab.now()
        await lab.send(10)
        lab.measure(f"acknowledgement in the {pause}", lab.now() - began)
        lab.resume(3)
        await lab.until_in_sync()
    await lab.until_replicated()


SCENARIO = LabScenario(
    title="A follower pauses for garbage collection: the ISR flaps",
    source="Producer loss: four-row table, row 4",
    claim="Network delay and pauses make the ISR flap: possible transient loss.",
    finding=(
        "With acks=all nothing is lost. The producer waits until the follower is out of the ISR: up to 9 s "
        "where its whole host is silent, because it is fenced then, and up to replica.lag.time.max.ms (30 s) "
        "where it still sends heartbeats."
    ),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    bounds={
        "acknowledgement in the first pause": (7.0, 9.1),
        "acknowledgement in the second pause": (7.0, 9.1),
    },
    expected=Outcome(acknowledged="0-29", leader=1, leader_epoch=0),
)
