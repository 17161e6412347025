"""An unclean election cuts records off that a consumer has read."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.consume()
    await lab.send(100)
    await lab.until_replicated()
    lab.stop_replication()
    await lab.send(10)
    await lab.until_in_sync(1)
    await lab.until_seen(110)
    lab.kill(1)
    lab.heal()
    await lab.until_leader(2)
    await lab.send(20)
    await lab.until_seen(130)
    await lab.sleep(2)


SCENARIO = LabScenario(
    title="The log is cut below a consumer's position: the consumer goes back",
    source="Field 13: redpanda#17728; KIP-320",
    claim=(
        "A Fetch in which nobody looks at the leader epoch does not show that the log was cut: the consumer "
        "skips the records that the new leader writes at offsets which it has read already."
    ),
    finding="The consumer compares the epoch of its position with the new leader, and goes back to offset 100.",
    play=play,
    topic={"unclean.leader.election.enable": "true"},
    producer={"acks": "1"},
    expected=Outcome(
        acknowledged="0-129", lost="100-109", seen="0-129", seen_and_lost="100-109", leader=2, leader_epoch=1
    ),
)
