"""The leader is cut off from its followers, and not from the controller; one replica is enough."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.architecture.partitions._followers import cut_off_the_followers


async def play(lab: Lab) -> None:
    await cut_off_the_followers(lab)
    lab.kill(1)
    lab.heal()
    await lab.until_offline()
    await lab.sleep(10)
    lab.note("brokers 2 and 3 run, and neither has records 100-109")
    await lab.start(1)
    await lab.until_leader(1)


SCENARIO = LabScenario(
    title="Network partition: followers are cut off from the leader, min.insync.replicas=1",
    source="Architecture: Network partition handling",
    claim="The ISR shrinks to the leader, which goes on taking writes.",
    finding=(
        "That is so where the leader still reaches the controller. It does not lead to a second leader: the "
        "controller hears from all and elects nobody. What only the leader has is lost with its disk, or by "
        "an unclean election."
    ),
    play=play,
    topic={"min.insync.replicas": "1"},
    producer={"acks": "all"},
    facts={"acknowledged before the links work": "10"},
    expected=Outcome(acknowledged="0-109", leader=1, leader_epoch=2),
)
