"""Row 6 of "What messages are lost": in the producer's buffer, for longer than it tries."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(10)
    lab.kill(lab.leader)
    await lab.until_offline()
    await lab.send(10)
    await lab.start(1)
    await lab.until_leader(1)
    await lab.send(10)


SCENARIO = LabScenario(
    title="Records in the producer's buffer while nobody leads, for longer than delivery.timeout.ms",
    source="Leader failure: What messages are lost, row 6",
    claim="They are not lost: the producer sends them after the next refresh of its metadata.",
    finding=(
        "It keeps them for delivery.timeout.ms (120 s) and no longer. Then it tells the application, and they "
        "are lost if that does not look."
    ),
    play=play,
    replication_factor=1,
    producer={"acks": "all"},
    expected=Outcome(
        acknowledged="0-9, 20-29", failed="10-19", errors="REQUEST_TIMED_OUT", leader=1, leader_epoch=2
    ),
)
