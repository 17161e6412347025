"""Leaders die, and records stay at the offsets that the producer was told."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(100)
    await lab.until_replicated()
    lab.silence(1, "producer")
    await lab.send(10, waits=False)
    await lab.until_written(2, 3)
    lab.kill(1)
    await lab.until_leader(2)
    await lab.until_told()
    await lab.send(10)
    lab.heal()
    await lab.start(1)
    await lab.until_in_sync()
    lab.kill(2)
    await lab.until_leader_changes()
    await lab.send(10)
    lab.fact("records that are not where the producer was told", await lab.count_moved_records())
    await lab.start(2)
    await lab.until_in_sync()
    await lab.until_replicated()
    lab.compare_copies()


SCENARIO = LabScenario(
    title="Offsets stay after leaders have changed",
    source="Field 7: redpanda#3003",
    claim="After a change of the leader producers were told offsets at which other records were.",
    finding="The response to the repeated batch has the offset at which the former leader wrote it.",
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    only_simulated="it compares the bytes of the logs on the disks",
    facts={"records that are not where the producer was told": "0", "copies on 1, 2, 3": "equal"},
    expected=Outcome(acknowledged="0-129", leader=1, leader_epoch=2),
)
