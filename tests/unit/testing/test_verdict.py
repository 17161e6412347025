"""The verdict on a program, from what it said and what the log has."""

from __future__ import annotations

import pytest

from strandline.testing.torture.program import Said, parse_line
from strandline.testing.torture.verdict import (
    AT_LEAST_ONCE,
    EXACTLY_ONCE,
    Problem,
    TrialResult,
    judge_consumer,
    judge_producer,
)


def done(*offsets: int, partition: int = 0) -> list[Said]:
    return [Said(float(number), place=("t", partition, offset)) for number, offset in enumerate(offsets)]


def places(*offsets: int) -> list[tuple[str, int, int]]:
    return [("t", 0, offset) for offset in offsets]


def kinds(problems: list[Problem]) -> dict[str, bool]:
    return {problem.kind: problem.is_allowed for problem in problems}


def test_everything_done_once_and_in_order_is_no_problem() -> None:
    assert judge_consumer(done(0, 1, 2), places(0, 1, 2), {("t", 0): 3}, EXACTLY_ONCE) == []


def test_record_that_was_passed_over_is_lost() -> None:
    (problem,) = judge_consumer(done(0, 2), places(0, 1, 2), {}, AT_LEAST_ONCE)
    assert (problem.kind, problem.text, problem.moment_s) == ("lost", "1 never done: t-0@1", 1.0)


def test_lost_record_has_the_moment_when_the_program_went_past_it() -> None:
    said = [*done(0, 2, 3), Said(9.0, place=("t", 1, 5))]
    (problem,) = judge_consumer(said, places(0, 1, 2, 3), {}, AT_LEAST_ONCE)
    assert (problem.kind, problem.moment_s) == ("lost", 1.0)


def test_record_below_the_committed_offset_is_lost() -> None:
    assert kinds(judge_consumer(done(0), places(0, 1), {("t", 0): 2}, AT_LEAST_ONCE)) == {"lost": False}


def test_record_that_nobody_passed_is_stuck() -> None:
    assert kinds(judge_consumer(done(0), places(0, 1), {("t", 0): 1}, AT_LEAST_ONCE)) == {"stuck": False}


@pytest.mark.parametrize(("guarantee", "is_allowed"), [(AT_LEAST_ONCE, True), (EXACTLY_ONCE, False)])
def test_record_that_is_done_again_is_duplicated(guarantee: str, is_allowed: bool) -> None:
    (problem,) = judge_consumer(done(0, 1, 0, 1, 2), places(0, 1, 2), {}, guarantee)
    assert (problem.kind, problem.is_allowed, problem.moment_s) == ("duplicated", is_allowed, 2.0)


def test_record_that_is_first_done_after_a_later_one_is_reordered() -> None:
    (problem,) = judge_consumer(done(0, 2, 1), places(0, 1, 2), {}, AT_LEAST_ONCE)
    assert (problem.kind, problem.text) == ("reordered", "t-0@1 was done after offset 2")


def acknowledged(*ids: int) -> list[Said]:
    return [Said(float(number), record_id=str(each)) for number, each in enumerate(ids)]


def test_acknowledged_record_that_is_not_in_the_log_is_lost() -> None:
    (problem,) = judge_producer(acknowledged(0, 1, 2), {0: ["0", "2"]}, 3, EXACTLY_ONCE, is_over=True)
    assert (problem.kind, problem.moment_s) == ("lost", 1.0)


@pytest.mark.parametrize(("is_over", "kind"), [(True, "lost"), (False, "stuck")])
def test_record_that_was_never_acknowledged(is_over: bool, kind: str) -> None:
    problems = judge_producer(acknowledged(0, 2), {0: ["0", "2"]}, 3, EXACTLY_ONCE, is_over=is_over)
    assert kinds(problems) == {kind: False}


def test_ids_in_the_log_twice_and_out_of_order() -> None:
    problems = judge_producer(acknowledged(0, 1, 2), {0: ["0", "2", "1", "0"]}, 3, EXACTLY_ONCE, is_over=True)
    assert kinds(problems) == {"duplicated": False, "reordered": False}
    allowed = judge_producer(acknowledged(0), {0: ["0", "0"]}, 1, AT_LEAST_ONCE, is_over=True)
    assert kinds(allowed) == {"duplicated": True}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"topic": "t", "partition": 1, "offset": 7}\n', Said(1.0, place=("t", 1, 7))),
        (b'{"id": 7}\n', Said(1.0, record_id="7")),
        (b'{"id": 7, "topic": "t", "partition": 1, "offset": 9}\n', Said(1.0, ("t", 1, 9), "7")),
        (b"hello\n", None),
        (b"{not json\n", None),
        (b'{"topic": "t"}\n', None),
        (b'{"topic": "t", "partition": "x", "offset": 7}\n', None),
    ],
)
def test_lines_that_are_for_people_count_for_nothing(line: bytes, said: Said | None) -> None:
    assert parse_line(line, 1.0) == said


def test_verdict_names_the_moment_and_the_fault() -> None:
    problem = Problem(kind="lost", text="1 never done: t-0@1", moment_s=3.0)
    result = TrialResult(fault="full-restart", role="consumer", seconds=9.0, fault_s=2.0, problems=[problem])
    assert "lost: 1 never done: t-0@1 at 3.0 s, the fault struck at 2.0 s" in str(result)
    with pytest.raises(AssertionError, match="full-restart"):
        result.check()
