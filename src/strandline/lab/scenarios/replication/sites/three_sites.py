"""A cluster over three sites, of which one is lost."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.replication.sites._lost_site import lose_the_site_of_the_leader


async def play(lab: Lab) -> None:
    await lose_the_site_of_the_leader(lab, controllers=1)
    await lab.send(100)


SCENARIO = LabScenario(
    title="A cluster over three sites: one is lost",
    source="Replication: Replication factor; Multi-datacenter patterns, 1",
    claim=(
        "RF 3 and min.insync.replicas=2, a replica and a controller in each site: nothing is lost, and writes "
        "go on."
    ),
    play=play,
    brokers=6,
    controllers=3,
    racks=("a", "a", "b", "b", "c", "c"),
    is_placed_by_cluster=True,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-199", leader=2, leader_epoch=1),
)
