"""Groups: no partition belongs to two members in one generation."""

from __future__ import annotations

from strandline.base.ids import TopicPartition
from strandline.sim.history import History, Violation


def check(history: History) -> None:
    owners: dict[tuple[str, int, TopicPartition], str] = {}
    for each in history.owners:
        for where in sorted(each.partitions):
            known = owners.setdefault((each.group, each.generation, where), each.member)
            if known != each.member:
                raise Violation(
                    "owned-twice",
                    f"{where} in generation {each.generation} of {each.group}: {known} and {each.member}",
                )
