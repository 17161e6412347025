"""The leader pauses, the next one is killed, and the first goes on with requests of another time."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(100)
    await lab.until_replicated()
    lab.pause(1)
    await lab.send(20, waits=False)
    await lab.until_leader(2)
    told = "broker 2 writes what the producer sends, and its responses are lost"
    fault = lab.fault(2, told, kind="drop_response", api="Produce", times=None)
    await lab.until_struck(fault)
    await lab.until_written(3)
    lab.kill(2)
    await lab.until_leader(3)
    lab.resume(1)
    await lab.until_told()
    await lab.until_in_sync(1, 3)
    await lab.start(2)
    await lab.until_in_sync()
    await lab.until_replicated()
    lab.compare_copies()


SCENARIO = LabScenario(
    title="A paused leader goes on after two elections: nothing is there twice",
    source="Field 6: redpanda#3039",
    claim="With pauses and kills an idempotent producer's records were written twice.",
    finding=(
        "Each leader knows the sequence numbers from its log. The paused leader is a follower of an epoch that "
        "is over when it goes on, and its log becomes that of the others."
    ),
    play=play,
    producer={"acks": "all"},
    only_simulated="it compares the bytes of the logs on the disks",
    facts={"copies on 1, 2, 3": "equal"},
    expected=Outcome(acknowledged="0-119", leader=3, leader_epoch=2),
)
