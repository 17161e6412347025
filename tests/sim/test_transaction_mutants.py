"""Each of these takes one rule of transactions away, and a scenario has to notice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from strandline.groups.committed_offset import OffsetChanges
from strandline.groups.offsets import GroupOffsets
from strandline.partition.open_transactions import OpenTransactions
from strandline.sim.search.run import run
from strandline.sim.search.scenario import shipped
from strandline.storage.log import Log

SEEDS_MAX = 6
Patch = pytest.MonkeyPatch


def open_transactions_are_shown(patch: Patch) -> None:
    patch.setattr(OpenTransactions, "last_stable_offset", lambda self, high_watermark: high_watermark)


def readers_are_not_told_what_was_aborted(patch: Patch) -> None:
    patch.setattr(Log, "aborted_in", lambda self, given, offset, upper_offset: [])


def offsets_count_before_the_commit(patch: Patch) -> None:
    def put_pending(self: GroupOffsets, producer_id: int, changes: OffsetChanges) -> None:
        self.put(changes)

    patch.setattr(GroupOffsets, "put_pending", put_pending)


# Each with the scenario that notices, and the verdicts that it may come to.
MUTANTS: dict[Callable[[Patch], None], tuple[str, set[str]]] = {
    open_transactions_are_shown: ("transactions", {"aborted-read", "precommitted-read", "nonmonotonic-poll"}),
    readers_are_not_told_what_was_aborted: ("transactions", {"aborted-read"}),
    offsets_count_before_the_commit: ("loops", {"not-the-image"}),
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_mutant_is_noticed(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutant(monkeypatch)
    name, verdicts = MUTANTS[mutant]
    for seed in range(SEEDS_MAX):
        outcome = run(shipped()[name], seed)
        if not outcome.is_ok:
            assert outcome.verdict in verdicts, outcome.message
            return
    pytest.fail(f"{SEEDS_MAX} seeds do not notice")
