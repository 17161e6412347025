"""Two leaders have written different records at the same offsets."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(100)
    await lab.until_replicated()
    lab.stop_replication()
    await lab.send(5)
    lab.kill(1)
    await lab.until_leader_changes()
    lab.heal()
    await lab.send(5)
    lab.note("brokers 1 and 2 have different records at offsets 100-104, and logs of equal length")
    await lab.start(1)
    await lab.until_in_sync()
    await lab.until_replicated()
    lab.compare_copies()


SCENARIO = LabScenario(
    title="Divergence: the former leader has other records at the same offsets",
    source="Replication: Leader epoch (KIP-101)",
    claim=(
        "The broker that comes back asks how far the old epoch went, and cuts its log there: no divergence."
    ),
    finding=(
        "The lengths of the logs tell nothing here, they are equal. Without epochs the broker would keep its "
        "records 100-104, and consumers would read others after the next election."
    ),
    play=play,
    topic={"min.insync.replicas": "1"},
    producer={"acks": "1"},
    only_simulated="it compares the bytes of the logs on the disks",
    facts={"copies on 1, 2, 3": "equal"},
    expected=Outcome(acknowledged="0-109", lost="100-104", leader=2, leader_epoch=1),
)
