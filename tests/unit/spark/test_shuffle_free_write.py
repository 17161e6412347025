"""Which partitions a task may write to without a shuffle, and what it does with rows that belong elsewhere."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from strandline.client.producer.partitioners import partition_for_key
from strandline.spark.sink.shuffle_free_write import (
    ForeignPartitionError,
    TaskPartitions,
    assign_own_partitions,
    select_record_columns,
    task_partitions_of,
)
from strandline.spark.sink.task_writer import FOREIGN_PARTITION, TaskReport, check_reports


def rows(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array([b"v"] * 4, pa.binary()), **columns})


def test_no_two_tasks_own_a_partition_and_each_partition_is_owned() -> None:
    for tasks in range(1, 7):
        task_partitions = TaskPartitions(tasks, 6)
        # A row that names its partition is taken by one task and refused by all others.
        for partition in range(6):
            named = rows(partition=pa.array([partition] * 4, pa.int32()))
            taken = []
            for number in range(tasks):
                try:
                    taken.append(assign_own_partitions(named, task_partitions, number).to_pylist())
                except ForeignPartitionError:
                    continue
            assert taken == [[partition] * 4]


def test_rows_without_a_key_go_to_the_tasks_own_partitions() -> None:
    nothing = pa.array([None] * 4, pa.binary())
    for batch in (rows(), rows(key=nothing), rows(key=nothing, partition=pa.array([None] * 4, pa.int32()))):
        assert set(assign_own_partitions(batch, TaskPartitions(2, 2), 1).to_pylist()) == {1}
    found = {
        each
        for _ in range(100)
        for each in assign_own_partitions(rows(), TaskPartitions(2, 6), 1).to_pylist()
    }
    assert found == {1, 3, 5}, "all of them in time"


def test_rows_with_keys_stay_only_if_all_of_them_belong_here() -> None:
    all_keys = [b"%d" % number for number in range(100)]
    keys = [key for key in all_keys if partition_for_key(key, 4) == 2][:4]
    stranger = next(key for key in all_keys if partition_for_key(key, 4) != 2)
    here = rows(key=pa.array(keys, pa.binary()))
    assert assign_own_partitions(here, TaskPartitions(4, 4), 2).to_pylist() == [2] * 4
    assert assign_own_partitions(here, TaskPartitions(2, 4), 0).to_pylist() == [2] * 4, "2 is even"
    with pytest.raises(ForeignPartitionError, match="task 1 of 4"):
        assign_own_partitions(here, TaskPartitions(4, 4), 1)
    one_of_another = rows(key=pa.array([*keys[:3], stranger], pa.binary()))
    with pytest.raises(ForeignPartitionError):
        assign_own_partitions(one_of_another, TaskPartitions(4, 4), 2)


def test_a_report_of_rows_elsewhere_counts_before_other_errors() -> None:
    reports = [
        TaskReport("", -1, 0, 1, "no broker"),
        TaskReport("", FOREIGN_PARTITION, 0, 1, "rows of others"),
    ]
    with pytest.raises(ForeignPartitionError, match="rows of others"):
        check_reports(reports, {1: 0})


class Plan:
    def __init__(self, kind: str, tasks: int) -> None:
        self._kind, self._tasks = kind, tasks

    def getClass(self) -> Any:
        return SimpleNamespace(getSimpleName=lambda: self._kind)

    def rdd(self) -> Any:
        return SimpleNamespace(getNumPartitions=lambda: self._tasks)


@pytest.mark.parametrize(
    ("kind", "tasks", "expected"),
    [
        ("LogicalRDD", 3, TaskPartitions(3, 4)),
        ("LogicalRDD", 5, None),
        ("LogicalRDD", 0, None),
        ("Project", 3, None),
    ],
)
def test_it_is_tried_where_the_tasks_are_known_and_no_more_than_partitions(
    kind: str, tasks: int, expected: TaskPartitions | None
) -> None:
    df: Any = SimpleNamespace(_jdf=SimpleNamespace(logicalPlan=lambda: Plan(kind, tasks)))
    assert task_partitions_of(df, 4) == expected
    unknown: Any = SimpleNamespace(_jdf=None)
    assert task_partitions_of(unknown, 4) is None


def test_only_what_records_are_made_of_goes_to_tasks() -> None:
    chosen: list[tuple[str, ...]] = []
    df: Any = SimpleNamespace(columns=["value", "key"], select=lambda *names: chosen.append(names))
    assert select_record_columns(df) is df
    df.columns = ["topic", "value", "key", "offset"]
    select_record_columns(df)
    assert chosen == [("key", "value")]
