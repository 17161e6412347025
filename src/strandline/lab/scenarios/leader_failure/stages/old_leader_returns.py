"""The old leader comes back with records that nobody else has."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(1000)
    await lab.until_replicated()
    lab.stop_replication()
    await lab.send(5)
    lab.kill(lab.leader)
    await lab.until_leader_changes()
    lab.heal()
    await lab.send(2)
    await lab.start(1)
    await lab.until_in_sync()
    await lab.until_replicated()


SCENARIO = LabScenario(
    title="The old leader returns and cuts off what only it has",
    source="Leader failure: What happens when the old leader returns",
    claim=(
        "Broker 1 cuts its log from 1005 to 1000, reads records 1000 and 1001 of the new leader, and is "
        "in sync again."
    ),
    play=play,
    topic={"min.insync.replicas": "1"},
    producer={"acks": "1"},
    expected=Outcome(acknowledged="0-1006", lost="1000-1004", leader=2, leader_epoch=1),
)
