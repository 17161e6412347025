"""Six brokers in three zones: replicas are in all three, and one zone is lost."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(100)
    await lab.until_replicated()
    zone = {1: (1, 2), 2: (1, 2), 3: (3, 4), 4: (3, 4), 5: (5, 6), 6: (5, 6)}[lab.leader]
    for broker in zone:
        lab.kill(broker)
    await lab.until_leader_changes()
    await lab.send(100)


SCENARIO = LabScenario(
    title="A zone of three is lost, with broker.rack",
    source="Replication: Rack awareness; Leader failure: Data loss scenario 2, mitigation",
    claim="Two of three replicas are left, and writes go on.",
    play=play,
    racks=("a", "a", "b", "b", "c", "c"),
    brokers=6,
    is_placed_by_cluster=True,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-199", leader=2, leader_epoch=1),
)
