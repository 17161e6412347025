"""A scenario whose rule is switched off must not end as expected."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from strandline.broker.replication import replica_fetcher
from strandline.controller.partitions import UNCLEAN, PartitionChange
from strandline.lab import base
from strandline.lab.base import Stuck
from strandline.lab.run import run_simulated
from strandline.lab.scenario import load
from strandline.partition import leader
from strandline.partition.producers import Producers

Patch = pytest.MonkeyPatch


def watermark_is_the_leader_s_end(patch: Patch) -> None:
    patch.setattr(leader, "high_watermark", max)


def repeated_batches_are_appended(patch: Patch) -> None:
    patch.setattr(Producers, "check", lambda self, header, guard=None: None)


def followers_cut_nothing(patch: Patch) -> None:
    patch.setattr(replica_fetcher, "truncation_point", lambda entries, end, epoch, end_offset: end)


def any_replica_may_lead(patch: Patch) -> None:
    original = PartitionChange.__init__

    def allow(self: PartitionChange, *arguments: object, **keywords: object) -> None:
        original(self, *arguments, **{**keywords, "election": UNCLEAN})  # type: ignore[arg-type]

    patch.setattr(PartitionChange, "__init__", allow)


def nobody_lags(patch: Patch) -> None:
    patch.setattr(leader.PartitionLeader, "lagging", lambda self, lag_max_s, now: ())


MUTANTS: list[tuple[str, Callable[[Patch], None]]] = [
    ("baseline", watermark_is_the_leader_s_end),
    ("acks-all-min-isr-2", watermark_is_the_leader_s_end),
    ("lost-acknowledgement", repeated_batches_are_appended),
    ("old-leader-returns", followers_cut_nothing),
    ("split-brain", followers_cut_nothing),
    ("dies-in-stage-2-new-leader-lacks-it", followers_cut_nothing),
    ("unclean-election-8-6-4", followers_cut_nothing),
    ("three-elections-in-a-row", repeated_batches_are_appended),
    ("isr-shrinks-and-expands", nobody_lags),
    ("no-unclean-election", any_replica_may_lead),
    ("acks-all-min-isr-1", any_replica_may_lead),
]


@pytest.mark.parametrize(("name", "mutant"), MUTANTS, ids=lambda each: getattr(each, "__name__", each))
def test_scenario_notices_that_its_rule_is_missing(
    name: str, mutant: Callable[[Patch], None], monkeypatch: Patch
) -> None:
    mutant(monkeypatch)
    monkeypatch.setattr(base, "PATIENCE_SECONDS", 60.0)
    try:
        differences = run_simulated(load(name)).differences
    except (Stuck, AssertionError) as error:  # a node's own check may be the first to notice
        differences = [str(error)]
    assert differences
