"""Three replicas with 8, 6 and 4 records; the partition waits for one that has all that is committed."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.replication.elections._three_lengths import leave_8_6_4


async def play(lab: Lab) -> None:
    await leave_8_6_4(lab)
    await lab.until_offline()
    await lab.sleep(10)
    await lab.start(2)
    await lab.start(1)
    await lab.until(lambda: lab.leader > 0, "broker 1 or 2 to lead")
    await lab.until_told()
    await lab.until_in_sync()
    await lab.until_replicated()
    lab.compare_copies()


SCENARIO = LabScenario(
    title="No unclean election with log ends 8, 6 and 4",
    source="Replication: Data loss mechanics with unclean election",
    claim="The partition is offline until broker 0 or 1 has recovered. Nothing is lost.",
    finding=(
        "It waits for the one of the two that led last (KIP-966): the other was killed and may lack what it "
        "had not synced."
    ),
    play=play,
    topic={"min.insync.replicas": "1", "unclean.leader.election.enable": "false"},
    producer={"acks": "all"},
    only_simulated="it compares the bytes of the logs on the disks",
    facts={"copies on 1, 2, 3": "equal"},
    expected=Outcome(acknowledged="0-7", leader=1, leader_epoch=2),
)
