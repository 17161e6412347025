"""Data loss scenario 2 as it is written: leader and one follower die while the third is slow."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(1000)
    await lab.until_replicated()
    lab.stop_replication(3)
    await lab.send(1, waits=False)
    await lab.until_written(2)
    await lab.sleep(1)
    lab.fact("acknowledged before broker 3 has it", lab.count_acknowledged() > 1000)
    lab.kill(1)
    lab.kill(2)
    lab.heal()
    await lab.until_leader(3)
    await lab.sleep(10)
    await lab.start(2)
    await lab.until_told()


SCENARIO = LabScenario(
    title="Leader and follower die, and the third replica is slow",
    source="Leader failure: Data loss scenario 2",
    claim="The record is acknowledged when two replicas have it. Only the third is left: offline, or lost.",
    finding=(
        "The acknowledgement waits for each replica that is in sync, not for min.insync.replicas of them. "
        "Broker 3 is in sync for 30 s more, so nothing was acknowledged: it leads, and the producer sends the "
        "record again. The two options of the text are those of a replica that has left the ISR: no-unclean- "
        "election, unclean-election."
    ),
    play=play,
    facts={"acknowledged before broker 3 has it": "False"},
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-1000", leader=3, leader_epoch=1),
)
