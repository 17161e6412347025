"""The step table of idempotence through a re-election: the new leader has the batch."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(100)
    await lab.until_replicated()
    lab.silence(1, "producer")
    await lab.send(10, waits=False)
    await lab.until_written(2, 3)
    lab.kill(1)
    await lab.until_leader_changes()
    lab.fact("last sequence that broker 2 knows", lab.last_sequence(2))
    await lab.until_told()
    await lab.send(10)
    lab.fact("last sequence in the end", lab.last_sequence(2))


SCENARIO = LabScenario(
    title="The step table: the new leader has the batch that is sent again",
    source="Idempotence: Step-by-step through leader failover, step 5",
    claim=(
        "Broker B has rebuilt the state of producers from its log, sees sequences 100-109 as duplicates, and "
        "takes 110-119."
    ),
    finding="It does not ignore the batch: it responds as if it had just written it, with its offset.",
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all", "enable.idempotence": "true"},
    only_simulated="it looks at the state of producers in a broker",
    facts={"last sequence that broker 2 knows": "109", "last sequence in the end": "119"},
    expected=Outcome(acknowledged="0-119", leader=2, leader_epoch=1),
)
