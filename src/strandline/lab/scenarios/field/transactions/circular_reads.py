"""Two transactions that are open at the same time never read each other's records."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.consume()
    await lab.begin_transaction()
    await lab.producer("second", {"transactional.id": "second"})
    await lab.begin_transaction("second")
    await lab.send(5)
    await lab.send(5, name="second")
    await lab.sleep(5)
    lab.fact("records that each transaction sees of the other", lab.count_seen())
    await lab.commit_transaction("second")
    await lab.sleep(5)
    lab.fact("records that the first sees after the commit of the second", lab.count_seen())
    await lab.send(5)
    await lab.commit_transaction()
    await lab.until_seen(15)


SCENARIO = LabScenario(
    title="Two open transactions do not read each other's records",
    source="Field 8: redpanda#3036; Jepsen on Redpanda 21.11.2",
    claim=(
        "A transaction read what another had written, and that one what the first had written: neither can "
        "have been before the other (a circular flow)."
    ),
    finding=(
        "A consumer reads up to the first open transaction of the partition. What the second commits is read "
        "only after the first has ended, though it was committed before."
    ),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all", "transactional.id": "orders"},
    consumer={"isolation.level": "read_committed"},
    facts={
        "records that each transaction sees of the other": "0",
        "records that the first sees after the commit of the second": "0",
    },
    expected=Outcome(acknowledged="0-14", seen="0-14", leader=1, leader_epoch=0),
)
