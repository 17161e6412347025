"""The map of offsets: exact where a record was copied, and never ahead of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from strandline.mirror.journal.offset_map import CopiedRange, OffsetMap


def test_offset_of_a_copied_record_is_exact() -> None:
    offsets = OffsetMap([CopiedRange(10, 100, 5), CopiedRange(20, 106, 5)])

    assert [offsets.to_target(each) for each in (10, 12, 14, 20, 24)] == [100, 102, 104, 106, 110]


def test_offset_in_a_gap_is_that_of_the_next_copied_record() -> None:
    offsets = OffsetMap([CopiedRange(10, 100, 5), CopiedRange(20, 106, 5)])

    assert [offsets.to_target(each) for each in (15, 19)] == [106, 106]


def test_offset_after_everything_is_the_end_of_the_copies() -> None:
    offsets = OffsetMap([CopiedRange(10, 100, 5)])

    assert [offsets.to_target(each) for each in (15, 1_000)] == [105, 105]


def test_offset_before_everything_is_the_first_copy() -> None:
    assert OffsetMap([CopiedRange(10, 100, 5)]).to_target(3) == 100


def test_nothing_copied_has_no_translation() -> None:
    assert OffsetMap().to_target(3) is None
    assert OffsetMap().to_source(3) is None


def test_consecutive_ranges_become_one() -> None:
    assert OffsetMap([CopiedRange(0, 7, 5), CopiedRange(5, 12, 5)]).ranges == (CopiedRange(0, 7, 10),)


def test_records_that_the_source_lost_are_replaced_by_those_after_them() -> None:
    offsets = OffsetMap([CopiedRange(0, 0, 10), CopiedRange(6, 11, 2)])

    assert offsets.ranges == (CopiedRange(0, 0, 6), CopiedRange(6, 11, 2))
    assert offsets.to_target(7) == 12


def test_ranges_that_the_target_deleted_are_forgotten_except_one() -> None:
    offsets = OffsetMap([CopiedRange(0, 0, 5), CopiedRange(5, 6, 5), CopiedRange(10, 12, 5)])
    offsets.drop_before_target(11)
    assert offsets.ranges == (CopiedRange(10, 12, 5),)
    offsets.drop_before_target(1_000)
    assert offsets.ranges == (CopiedRange(10, 12, 5),)


steps = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(1, 4)), min_size=1, max_size=20)


@given(steps)
def test_translation_agrees_with_a_list_of_every_record(parts: list[tuple[int, int, int]]) -> None:
    """`parts` are gaps at the source, gaps at the target and counts."""
    offsets, pairs = OffsetMap(), []
    source = target = 0
    for source_gap, target_gap, count in parts:
        source, target = source + source_gap, target + target_gap
        offsets.add(CopiedRange(source, target, count))
        pairs += [(source + each, target + each) for each in range(count)]
        source, target = source + count, target + count

    for asked in range(source + 3):
        following = [at_target for at_source, at_target in pairs if at_source >= asked]
        assert offsets.to_target(asked) == (following[0] if following else target)
    for asked in range(target + 3):
        after = [at_source for at_source, at_target in pairs if at_target >= asked]
        assert offsets.to_source(asked) == (after[0] if after else source)


@given(steps, st.integers(0, 60), st.integers(0, 30))
def test_merged_ranges_are_never_ahead_and_not_further_back_than_they_say(
    parts: list[tuple[int, int, int]], exact_from: int, gaps_max: int
) -> None:
    exact, merged = OffsetMap(), OffsetMap()
    source = target = 0
    for source_gap, target_gap, count in parts:
        source, target = source + source_gap, target + target_gap
        for offsets in (exact, merged):
            offsets.add(CopiedRange(source, target, count))
        source, target = source + count, target + count
    merged.coarsen(exact_from, gaps_max, len(merged))

    for asked in range(source + 3):
        wanted, found = exact.to_target(asked), merged.to_target(asked)
        assert wanted is not None
        assert found is not None
        assert 0 <= wanted - found <= merged.slack_at(asked) <= gaps_max
        if asked >= exact_from:
            assert found == wanted
    for asked in range(target + 3):
        wanted, found = exact.to_source(asked), merged.to_source(asked)
        assert wanted is not None
        assert found is not None
        assert 0 <= wanted - found <= gaps_max


@given(steps, st.integers(0, 60))
def test_cutting_a_merged_range_keeps_translations_from_being_ahead(
    parts: list[tuple[int, int, int]], cut: int
) -> None:
    exact, merged = OffsetMap(), OffsetMap()
    source = target = 0
    for source_gap, target_gap, count in parts:
        source, target = source + source_gap, target + target_gap
        for offsets in (exact, merged):
            offsets.add(CopiedRange(source, target, count))
        source, target = source + count, target + count
    merged.coarsen(source, 100, len(merged))
    cut = min(cut, source - 1)
    for offsets in (exact, merged):
        offsets.add(CopiedRange(cut, target + 1, 5))  # the source lost everything from `cut` on

    for asked in range(cut + 7):
        wanted, found = exact.to_target(asked), merged.to_target(asked)
        assert wanted is not None
        assert found is not None
        assert found <= wanted
        if asked >= cut:
            assert found == wanted


def test_records_that_came_back_stand_alone_when_ranges_are_merged() -> None:
    # "alone" at source 100 was copied after records that were at the target before it, and came back as 101 to 105.
    ranges = [
        CopiedRange(0, 0, 100),
        CopiedRange(100, 106, 1),
        CopiedRange(101, 100, 5),
        CopiedRange(107, 108, 3),
    ]
    offsets = OffsetMap(ranges)
    offsets.coarsen(1_000, 1_000, len(offsets))

    # A reader before "alone" at the target must still get it at the source.
    assert offsets.to_source(106) <= 100  # type: ignore[operator]
    assert [offsets.to_target(each) for each in (101, 105)] == [100, 104]
