"""Data loss scenario 5 of the leader failure analysis: two leaders, one of which does not know that it is none."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.producer("stranded", {"bootstrap.servers": lab.stage.address(1)})
    await lab.send(500)
    await lab.send(500, name="stranded")
    await lab.until_replicated()
    lab.isolate(1)
    lab.cut("producer", 1)
    await lab.until_leader_changes()
    await lab.send(5, name="stranded", waits=False)
    await lab.send(5)
    await lab.sleep(3)
    lab.heal()
    await lab.until_told("stranded")
    await lab.until_in_sync()
    await lab.until_replicated()


SCENARIO = LabScenario(
    title="Split brain: a leader that is cut off takes records",
    source="Leader failure: Data loss scenario 5; Architecture: Network partition",
    claim=(
        "Records that the old leader took are lost when it cuts its log. Those of the new leader are safe."
    ),
    play=play,
    topic={"min.insync.replicas": "1"},
    producer={"acks": "1"},
    expected=Outcome(acknowledged="0-1009", lost="1000-1004", leader=2, leader_epoch=1),
)
