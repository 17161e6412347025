"""The driver checks the reports of tasks before it commits: no partition was written twice."""

from __future__ import annotations

import pytest

from strandline.spark.sink.task_writer import (
    WHOLE_TOPIC,
    RepeatedWriteError,
    TaskFailedError,
    TaskReport,
    check_reports,
)


def test_a_stage_that_ran_twice_is_not_committed() -> None:
    reports = [TaskReport("t", 0, 5, 3), TaskReport("t", 1, 5, 3)]
    check_reports(reports, {3: 0})
    with pytest.raises(RepeatedWriteError, match="stage 3"):
        check_reports(reports, {3: 1})
    with pytest.raises(RepeatedWriteError, match="does not say"):
        check_reports(reports, {3: None})


def test_the_error_of_a_task_is_raised_before_the_repetition_that_it_caused() -> None:
    with pytest.raises(TaskFailedError, match="too large"):
        check_reports(
            [TaskReport("t", 0, 5, 3), TaskReport("", WHOLE_TOPIC, 0, 3, "a row is too large")], {3: 1}
        )


def test_two_tasks_that_wrote_one_partition_are_not_committed() -> None:
    with pytest.raises(RepeatedWriteError, match="one partition"):
        check_reports([TaskReport("t", 0, 5, 3), TaskReport("t", 0, 1, 3)], {3: 0})


def test_a_topic_that_one_task_writes_whole_has_no_second_writer() -> None:
    whole = TaskReport("t", WHOLE_TOPIC, 5, 3)
    check_reports([whole, TaskReport("u", 0, 1, 3)], {3: 0})
    for other in (whole, TaskReport("t", 2, 1, 3)):
        with pytest.raises(RepeatedWriteError, match="two tasks"):
            check_reports([whole, other], {3: 0})
