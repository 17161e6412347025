"""The last in-sync replica loses its power, and with it what it had not synced."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(100)
    await lab.until_replicated()
    await lab.stop(3)
    await lab.send(10)
    await lab.until_in_sync(1, 2)
    await lab.until_committed()
    await lab.stop(2)
    await lab.producer("careless", {"acks": "1"})
    await lab.send(5, name="careless")
    lab.fact("eligible leaders", list(lab.view.eligible_leaders))
    lab.cut_power(1)
    await lab.until_offline()
    await lab.start(1)
    await lab.start(3)
    await lab.sleep(20)
    lab.fact("leader while 1 and 3 are there", lab.leader)
    await lab.start(2)
    await lab.until_leader(2)
    await lab.send(10)


SCENARIO = LabScenario(
    title="The last in-sync replica has lost its page cache: an eligible replica leads",
    source="Field 16: KIP-966",
    claim=(
        "The last in-sync replica comes back with holes, or empty, and leads, because it is the only one in "
        "the set: committed records are lost though another replica has them."
    ),
    finding=(
        "Broker 2 left the set while the set was too small for acks=all: it has everything that was "
        "committed, and is an eligible leader. Broker 1 has lost all of its log here, and is none, because it "
        "ended uncleanly. The high watermark stood still, so that records 110-114, which nobody but broker 1 "
        "had, were never committed."
    ),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    only_simulated="a process can be killed, but what it wrote without syncing stays with the system",
    facts={"eligible leaders": "[2]", "leader while 1 and 3 are there": "-1"},
    expected=Outcome(acknowledged="0-124", lost="110-114", leader=2, leader_epoch=2),
)
