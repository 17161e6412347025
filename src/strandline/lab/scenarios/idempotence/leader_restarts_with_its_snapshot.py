"""The leader restarts, and knows the sequence numbers from its disk."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(100)
    lab.silence(1, "producer")
    await lab.send(10, waits=False)
    await lab.until_written(1)
    await lab.sleep(1)
    lab.kill(1)
    await lab.until_offline()
    lab.heal()
    await lab.start(1)
    await lab.until_leader(1)
    await lab.until(lambda: lab.last_sequence(1) >= 0, "broker 1 to open its log")
    lab.fact("last sequence after the restart", lab.last_sequence(1))
    await lab.until_told()


SCENARIO = LabScenario(
    title="The leader itself restarts: it reads the state of producers from its disk",
    source="Idempotence: How the new leader validates sequence numbers",
    claim="The state of producers is kept on disk: snapshots, and the log after them.",
    play=play,
    replication_factor=1,
    producer={"acks": "all", "enable.idempotence": "true"},
    only_simulated="it looks at the state of producers in a broker",
    facts={"last sequence after the restart": "109"},
    expected=Outcome(acknowledged="0-109", leader=1, leader_epoch=2),
)
