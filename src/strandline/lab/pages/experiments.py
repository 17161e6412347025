"""Experiments beside the failures: how many copies a record has when it is acknowledged, and how soon that is."""

from __future__ import annotations

from typing import Final

from strandline.lab.check.failures import Failure
from strandline.lab.lab import Lab

COPIES: Final = "copies"
LATENCY: Final = "latency"
_SHRUNK_SECONDS: Final = 60.0
_SENT: Final = 20


async def _fewest_copies(lab: Lab) -> None:
    """The followers stop replicating. A fact says how many replicas had the next record at its acknowledgement, be it
    before the ISR shrinks, after that, or when they replicate again."""
    await lab.send(100)
    await lab.wait_for(
        lambda: lab.view.replicas[0].end_offset == 100 and lab.is_replicated(), _SHRUNK_SECONDS
    )
    lab.stop_replication()
    await lab.send(1, waits=False)
    acknowledged = lab.producers["producer"].acknowledged
    if not await lab.wait_for(lambda: 100 in acknowledged, _SHRUNK_SECONDS):
        lab.heal()
        await lab.wait_for(lambda: 100 in acknowledged, _SHRUNK_SECONDS)
    lab.fact(COPIES, sum(each.end_offset > 100 for each in lab.view.replicas))


async def _latency(lab: Lab) -> None:
    """Nothing fails. The figure is the mean of the times until the producer was told."""
    await lab.send(1)
    seconds = 0.0
    for _ in range(_SENT):
        began = lab.now()
        await lab.send(1)
        seconds += lab.now() - began
    lab.measure(LATENCY, seconds / _SENT)


EXPERIMENTS: Final = (
    Failure(name=COPIES, title="how many copies a record has when it is acknowledged", play=_fewest_copies),
    Failure(name=LATENCY, title="how soon a record is acknowledged", play=_latency),
)
