"""Steps that several scenarios share: a broker dies that leads many partitions."""

from __future__ import annotations

from collections.abc import Iterator

from strandline.lab.lab import Lab
from strandline.lab.timeline import PartitionView

OTHERS = "others"


async def die_with(lab: Lab, others: int) -> None:
    """Broker 1 leads so many partitions beside that of the topic."""
    await lab.send(10)
    if others:
        await lab.create_topic(OTHERS, others, (1, 2))
        await lab.until(lambda: _all_lead(lab, others, 1), "broker 1 to lead all partitions")
    await lab.until_replicated()
    lab.kill(1)
    died_at = lab.now()
    await lab.until(lambda: _all_have_leader(lab, others), "all elections", every_seconds=0.002)
    lab.measure("until all partitions have a leader", lab.now() - died_at)
    await lab.until(lambda: _all_lead(lab, others, 2), "all leaders to lead", every_seconds=0.002)
    lab.measure("until all leaders lead", lab.now() - died_at)
    await lab.send(10)


def _all_have_leader(lab: Lab, others: int) -> bool:
    return all(each.leader == 2 for each in _views(lab, others))


def _all_lead(lab: Lab, others: int, broker: int) -> bool:
    return all(
        each.role == "leader"
        for view in _views(lab, others)
        for each in view.replicas
        if each.broker == broker
    )


def _views(lab: Lab, others: int) -> Iterator[PartitionView]:
    """Yields the views that change last first, so that most looks are short."""
    yield lab.view
    for partition in reversed(range(others)):
        yield lab.stage.view(OTHERS, partition)
