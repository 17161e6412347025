"""The offsets that are shown while their records are not committed."""

from __future__ import annotations

from strandline.groups.committed_offset import GroupOffset
from strandline.groups.committed_view import CommittedView
from strandline.groups.offsets import GroupOffsets
from strandline.groups.result import Entry
from strandline.wire.records.offsets_topic import OffsetCommitKey
from tests.unit.groups.machine import FakeTopics


class Log:
    """Appends commits at offsets 0, 1, 2, ... and applies them at once, as a coordinator does."""

    def __init__(self) -> None:
        self.offsets = GroupOffsets()
        self.view = CommittedView(self.offsets, FakeTopics(t=4))
        self.end = 0

    def commit(self, offset: int | None, partition: int = 0) -> None:
        key = OffsetCommitKey(group="g", topic="t", partition=partition)
        entry = Entry(key, None)
        if offset is not None:
            entry = self.offsets.entry("g", "t", partition, GroupOffset(offset, -1, "", 0))
        self.end += 1
        self.view.will_change([entry], [], self.end)
        self.offsets.apply(key, entry.value)  # type: ignore[arg-type]

    def shown(self, partition: int = 0) -> int | None:
        found = self.view.get("g", "t", partition)
        return None if found is None else found.offset


def test_an_offset_is_shown_when_its_record_is_committed_and_not_before() -> None:
    log = Log()
    log.commit(5)
    assert (log.shown(), log.view.of_group("g")) == (None, {})
    log.view.advance(1)
    assert log.shown() == 5
    assert {t: {p: c.offset for p, c in ps.items()} for t, ps in log.view.of_group("g").items()} == {
        "t": {0: 5}
    }


def test_changes_are_shown_one_after_the_other() -> None:
    log = Log()
    for offset in (5, 6, 7):
        log.commit(offset)
    seen = []
    for high_watermark in range(4):
        log.view.advance(high_watermark)
        seen.append(log.shown())
    assert seen == [None, 5, 6, 7]


def test_a_deletion_is_shown_when_it_is_committed() -> None:
    log = Log()
    log.commit(5)
    log.view.advance(1)
    log.commit(None)
    assert log.shown() == 5
    assert list(log.view.of_group("g")) == ["t"]
    log.view.advance(2)
    assert (log.shown(), log.view.of_group("g")) == (None, {})


def test_other_places_are_not_held_back() -> None:
    log = Log()
    log.commit(5, partition=0)
    log.view.advance(1)
    log.commit(9, partition=1)
    assert (log.shown(0), log.shown(1)) == (5, None)
