"""The step table of idempotence through a re-election: the new leader lacks the batch."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.scenario import LabScenario


async def play(lab: Lab) -> None:
    await lab.send(100)
    await lab.until_replicated()
    lab.stop_replication()
    await lab.send(10, waits=False)
    await lab.sleep(1)
    lab.kill(1)
    await lab.until_leader_changes()
    lab.heal()
    lab.fact("last sequence that broker 2 knows", lab.last_sequence(2))
    await lab.until_told()
    await lab.send(10)
    lab.fact("last sequence in the end", lab.last_sequence(2))


SCENARIO = LabScenario(
    title="The step table: the new leader lacks the batch that is sent again",
    source="Idempotence: Step-by-step through leader failover, step 5",
    claim="Broker B sees sequences 100-109 as duplicates, and ignores them.",
    finding=(
        "Only if it has them. Here they were on the old leader alone: broker B knows sequence 99, takes "
        "100-109 as new ones, and then 110-119. In both cases they are there once."
    ),
    play=play,
    topic={"min.insync.replicas": "2"},
    producer={"acks": "all", "enable.idempotence": "true"},
    only_simulated="it looks at the state of producers in a broker",
    facts={"last sequence that broker 2 knows": "99", "last sequence in the end": "119"},
    expected=Outcome(acknowledged="0-119", leader=2, leader_epoch=1),
)
