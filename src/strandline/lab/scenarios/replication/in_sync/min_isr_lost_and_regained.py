"""Below min.insync.replicas acks=all is refused, and goes on when a replica is back."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(100)
    await lab.until_replicated()
    lab.kill(2)
    lab.kill(3)
    await lab.until_in_sync(1)
    await lab.send(10, waits=False)
    await lab.sleep(20)
    lab.note("the leader refuses acks=all, and the producer tries again")
    lab.fact("acknowledged below the minimum", lab.count_acknowledged() - 100)
    await lab.start(2)
    await lab.until_told()


SCENARIO = LabScenario(
    title="The in-sync replicas fall below the minimum, and one comes back",
    source="Replication: min.insync.replicas",
    claim="Writes fail with NotEnoughReplicas until a second replica is in sync.",
    finding=(
        "NOT_ENOUGH_REPLICAS is retriable: within delivery.timeout.ms (120 s) the application notices "
        "only a delay."
    ),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    facts={"acknowledged below the minimum": "0"},
    expected=Outcome(acknowledged="0-109", leader=1, leader_epoch=0),
)
