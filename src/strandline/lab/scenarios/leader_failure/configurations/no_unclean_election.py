"""Configuration 7 of the leader failure analysis without unclean elections: consistency before availability."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(850)
    await lab.until_replicated()
    lab.stop_replication(3)
    await lab.send(150)
    await lab.until_in_sync(1, 2)
    lab.kill(1)
    lab.kill(2)
    lab.heal()
    await lab.until_offline()
    await lab.sleep(30)
    await lab.start(2)
    await lab.sleep(10)
    lab.note("broker 2 was killed, so it may lack what was not on its disk: it does not lead")
    await lab.start(1)
    await lab.until_leader(1)
    await lab.send(5)


SCENARIO = LabScenario(
    title="No unclean election: the partition waits for a replica that has everything",
    source="Leader failure: Configuration 7; Data loss scenario 2, option A",
    claim="The partition is offline until broker 1 or 2 is back. Nothing is lost.",
    finding=(
        "Since KIP-966 a broker that was killed is no eligible leader when it comes back: what it had "
        "not synced may be gone. The partition waits for the last leader."
    ),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    expected=Outcome(acknowledged="0-1004", leader=1, leader_epoch=2),
)
