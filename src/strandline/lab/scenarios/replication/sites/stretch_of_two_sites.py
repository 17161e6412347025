"""A stretch cluster of two sites and a third place for the quorum; a site is lost."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.replication.sites._lost_site import lose_the_site_of_the_leader


async def play(lab: Lab) -> None:
    await lose_the_site_of_the_leader(lab, controllers=1)
    await lab.until_leader_changes()
    await lab.send(10, waits=False)
    await lab.sleep(20)
    lab.fact("acknowledged with two replicas of four", lab.count_acknowledged() - 100)
    await lab.set_topic({"min.insync.replicas": "2"})
    await lab.until_told()


SCENARIO = LabScenario(
    title="A stretch cluster of two sites: one is lost",
    source="Replication: Replication factor; Multi-datacenter patterns, 1",
    claim="RF 4 and min.insync.replicas=3: two replicas in each site, which survive the loss of a site.",
    finding=(
        "Nothing acknowledged is lost: three replicas are in both sites. But two replicas are left and three "
        "are asked for, so that writes stop until an administrator lowers the minimum. And the quorum needs a "
        "third place: see stretch-without-third-place."
    ),
    play=play,
    brokers=6,
    controllers=3,
    replication_factor=4,
    racks=("east", "east", "east", "west", "west", "west"),
    is_placed_by_cluster=True,
    topic={"min.insync.replicas": "3"},
    producer={"acks": "all"},
    facts={"acknowledged with two replicas of four": "0"},
    expected=Outcome(acknowledged="0-109", leader=2, leader_epoch=1),
)
