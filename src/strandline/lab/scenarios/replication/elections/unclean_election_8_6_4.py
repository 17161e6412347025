"""Three replicas with 8, 6 and 4 records; the shortest is elected."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario
from strandline.lab.scenarios.replication.elections._three_lengths import leave_8_6_4


async def play(lab: Lab) -> None:
    await leave_8_6_4(lab)
    await lab.until_leader(3)
    await lab.until_told()
    await lab.start(1)
    await lab.start(2)
    await lab.until_in_sync()
    await lab.until_replicated()
    lab.compare_copies()


SCENARIO = LabScenario(
    title="Unclean election with log ends 8, 6 and 4",
    source="Replication: Data loss mechanics with unclean election",
    claim=(
        "Broker 2 leads with four records. Records 4 and 5 were committed and are lost, 6 and 7 were not and are "
        "lost too. New writes start at offset 4."
    ),
    finding=(
        "The producer has no acknowledgement of records 6 and 7, so it sends them again: they are in the log, at "
        "other offsets. The two that were committed are lost for good."
    ),
    play=play,
    topic={"min.insync.replicas": "1", "unclean.leader.election.enable": "true"},
    producer={"acks": "all"},
    facts={"copies on 1, 2, 3": "equal"},
    only_simulated="it compares the bytes of the logs on the disks",
    expected=Outcome(acknowledged="0-7", lost="4-5", leader=3, leader_epoch=1),
)
