"""Leaders of three partitions drift to other brokers, and return to their preferred ones."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(9)
    lab.fact("leaders at first", lab.leaders())
    for broker in (2, 1):
        await lab.stop(broker)
        await lab.start(broker)
        await lab.until_in_sync()
    lab.fact("leaders after the restarts", lab.leaders())
    await lab.until(lambda: lab.leaders() == "1, 2, 3", "the preferred leaders")
    lab.fact("leaders in the end", lab.leaders())


SCENARIO = LabScenario(
    title="Leaders of three partitions drift to other brokers, and return",
    source="Replication: Preferred replica election",
    claim=(
        "After restarts some brokers lead more than others. Every leader.imbalance.check.interval.seconds "
        "(300 s) the controller elects preferred leaders that are in sync."
    ),
    play=play,
    partitions=3,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    facts={
        "leaders at first": "1, 2, 3",
        "leaders after the restarts": "2, 3, 3",
        "leaders in the end": "1, 2, 3",
    },
    expected=Outcome(acknowledged="0-8", leader=1, leader_epoch=2),
)
