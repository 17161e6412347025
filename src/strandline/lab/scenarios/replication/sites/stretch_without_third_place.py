"""A stretch cluster of two sites; the one with two of three controllers is lost."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.replication.sites._lost_site import lose_the_site_of_the_leader


async def play(lab: Lab) -> None:
    lost = await lose_the_site_of_the_leader(lab, controllers=2)
    await lab.sleep(60)
    lab.fact("a lost broker still counts as leader", lab.leader in lost)
    await lab.start(101)
    await lab.until_leader_changes()
    await lab.set_topic({"min.insync.replicas": "2"})
    await lab.send(10)


SCENARIO = LabScenario(
    title="A stretch cluster of two sites without a third place: the one with most controllers is lost",
    source="Replication: Multi-datacenter patterns, 1",
    claim="The quorum spans the sites, and the failover is automatic.",
    finding=(
        "One of two sites has the majority of the controllers. If it is lost, nobody can elect: the partition "
        "has no leader that lives until a controller is back. A third place for one controller prevents it."
    ),
    play=play,
    brokers=6,
    controllers=3,
    replication_factor=4,
    racks=("east", "east", "east", "west", "west", "west"),
    is_placed_by_cluster=True,
    topic={"min.insync.replicas": "3"},
    producer={"acks": "all"},
    facts={"a lost broker still counts as leader": "True"},
    expected=Outcome(acknowledged="0-109", leader=2, leader_epoch=1),
)
