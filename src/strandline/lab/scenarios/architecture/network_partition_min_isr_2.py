"""The leader is cut off from all others, and may acknowledge nothing."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.producer("stranded", {"bootstrap.servers": lab.stage.address(1)})
    await lab.send(50)
    await lab.send(50, name="stranded")
    await lab.until_replicated()
    lab.isolate(1)
    lab.cut("producer", 1)
    await lab.send(5, name="stranded", waits=False)
    await lab.until_leader_changes()
    await lab.send(5)
    await lab.sleep(60)
    lab.heal()
    await lab.until_told("stranded")
    await lab.until_in_sync()
    await lab.until_replicated()


SCENARIO = LabScenario(
    title="Network partition with acks=all and min.insync.replicas=2",
    source="Architecture: Network partition; Leader failure: Data loss scenario 5, mitigation",
    claim="The old leader cannot acknowledge, so nothing acknowledged is lost.",
    finding=(
        "The producer on the wrong side sends its records again when the links work, and they are in the "
        "log once."
    ),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-109", leader=2, leader_epoch=1),
)
