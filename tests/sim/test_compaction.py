"""A log that is compacted while the power may fail at any moment. The long version is `make soak`'s.

A rule that keeps records safe has a mutant here: without the rule some history must go wrong.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from strandline.storage import log_loader, segment_swap
from strandline.storage.compaction import cleaning
from strandline.storage.log import Log
from strandline.storage.log_loader import LoadRequest
from strandline.wire.record_batch import CorruptBatch
from tests.sim.compacted_logs import CompactedLog, run_histories
from tests.sim.seeds import seeds

# Of each, some five crashes: thousands in the suite, a million in the soak.
EACH = 650 if os.environ.get("STRANDLINE_SOAK") else 100


@seeds(6)
def test_a_reader_sees_the_newest_value_of_every_key_after_any_crash(seed: int) -> None:
    crashes, cleanings = run_histories(seed * EACH, EACH)
    assert crashes > EACH
    assert cleanings > EACH


def without_syncs(patch: pytest.MonkeyPatch) -> None:
    """The files are swapped in before they are on the device."""
    written = cleaning._Writer._write

    def finish(self: cleaning._Writer) -> None:
        written(self)
        self.segment.complete_indexes()
        self.segment.offset_index.write_out()
        self.segment.time_index.write_out()
        for path in self.segment.paths():
            self._files.forget(path)

    patch.setattr(cleaning._Writer, "finish", finish)


def without_completion(patch: pytest.MonkeyPatch) -> None:
    """A start leaves `.swap` files where they are."""
    patch.setattr(log_loader, "complete_swaps", lambda *_: [])


def with_old_files_gone_first(patch: pytest.MonkeyPatch) -> None:
    """Old segments are renamed before the new one is known to be whole."""

    def replace_segments(self: Log, bases: tuple[int, ...], size: int) -> list[str]:
        first = self._bases.index(bases[0])
        doomed = self.segments[first : first + len(bases)]
        renamed = [path for segment in doomed for path in segment.rename_for_deletion()]
        segment_swap.rename_segment(self._disk, self.directory, bases[0], ".cleaned", "")
        self.segments[first : first + len(bases)] = [
            type(doomed[0])(self._disk, self._files, self.directory, bases[0], size)
        ]
        self._bases[first : first + len(bases)] = [bases[0]]
        return renamed

    patch.setattr(Log, "replace_segments", replace_segments)


def without_gaps(patch: pytest.MonkeyPatch) -> None:
    """Recovery takes every gap between segments for a tail that was lost, also below the recovery point."""
    patch.setattr(
        "tests.sim.compacted_logs.LoadRequest",
        lambda **given: LoadRequest(**{**given, "gaps_below": 0, "recovery_point": 0}),
    )


MUTANTS = [
    without_syncs,
    without_completion,
    with_old_files_gone_first,
    without_gaps,
]


@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_without_a_rule_some_history_goes_wrong(
    mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    with pytest.raises((AssertionError, CorruptBatch)):
        run_histories(0, 3 * EACH)


def test_a_history_is_the_same_every_time() -> None:
    first, second = CompactedLog(4), CompactedLog(4)
    first.run()
    second.run()
    assert first.written == second.written
    assert (first.crashes, first.cleanings) == (second.crashes, second.cleanings)
