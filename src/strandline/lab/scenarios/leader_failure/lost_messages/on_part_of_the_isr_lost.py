"""Row 2 of "What messages are lost": above the high watermark, and the next leader lacks it."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(1000)
    await lab.until_replicated()
    lab.stop_replication(2)
    await lab.send(1)
    await lab.until_written(3)
    lab.kill(lab.leader)
    await lab.until_leader_changes()
    lab.heal()
    await lab.send(1)
    await lab.until_in_sync(2, 3)
    await lab.sleep(1)
    lab.compare_copies()


SCENARIO = LabScenario(
    title="A record above the high watermark is on part of the ISR: not on the next leader",
    source="Leader failure: What messages are lost, row 2",
    claim="The row says that it is not lost. That holds only if a replica that has it becomes leader.",
    finding=(
        "Broker 2 is first in the list and in sync, so it leads, though broker 3 has the record. Broker 3 "
        "cuts it off. With acks=1 it is lost; with acks=all it was not acknowledged, and is sent again."
    ),
    play=play,
    topic={"min.insync.replicas": "1"},
    producer={"acks": "1"},
    facts={"copies on 2, 3": "equal"},
    only_simulated="it compares the bytes of the logs on the disks",
    expected=Outcome(acknowledged="0-1001", lost="1000", leader=2, leader_epoch=1),
)
