"""The baseline of the leader failure analysis: only the leader has the last five records."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.consume()
    await lab.send(1000)
    await lab.until_replicated()
    await lab.until_seen(1000)
    lab.stop_replication()
    await lab.send(5)
    await lab.sleep(1)
    lab.kill(lab.leader)
    await lab.until_leader_changes()
    lab.heal()
    await lab.send(5)
    await lab.until_seen(1005)


SCENARIO = LabScenario(
    title="The leader dies with five records that no follower has",
    source="Leader failure: The baseline scenario; Consumer observation 1",
    claim="Records 1000-1004 are lost. No consumer has seen them.",
    play=play,
    topic={"min.insync.replicas": "1"},
    producer={"acks": "1"},
    expected=Outcome(
        acknowledged="0-1009", lost="1000-1004", seen="0-999, 1005-1009", leader=2, leader_epoch=1
    ),
)
