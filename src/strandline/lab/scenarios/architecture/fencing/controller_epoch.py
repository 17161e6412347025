"""A controller that was cut off believes to be active; nobody follows it."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.raw import begin_quorum_epoch
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(10)
    await lab.until_replicated()
    former = lab.controller
    others = [node for node in (101, 102, 103) if node != former]
    lab.cut(former, *others)
    lab.kill(1)
    await lab.until(lambda: lab.controller in others, "another controller")
    await lab.until_leader_changes()
    lab.heal()
    await lab.sleep(5)
    late = await lab.connect(others[0])
    lab.fact("a late message of the former controller", await begin_quorum_epoch(late, former, 1))
    lab.fact("controllers that believe to be active", len(lab.simulated.active_controllers()))
    await lab.send(10)


SCENARIO = LabScenario(
    title="Fencing by the controller epoch",
    source="Architecture: Split-brain prevention; Controller election",
    claim="Brokers reject commands of old controllers by the controller epoch.",
    finding=(
        "With KRaft there are no commands: brokers fetch the metadata log, in which only a majority can "
        "commit. The former controller may fence the dead broker in its own copy, and that is cut off again; "
        "its epoch is refused."
    ),
    play=play,
    controllers=3,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all"},
    only_simulated="it sends requests that no client sends",
    facts={
        "a late message of the former controller": "FENCED_LEADER_EPOCH",
        "controllers that believe to be active": "1",
    },
    expected=Outcome(acknowledged="0-19", leader=2, leader_epoch=1),
)
