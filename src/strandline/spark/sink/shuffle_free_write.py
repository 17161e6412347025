"""Writes without a shuffle: each task writes the rows that it has, to partitions that are its own.

Of `tasks` tasks the one with the number i owns the output partitions i, i + tasks, i + 2 * tasks and so on, so that no
two ever write to the same one, whatever their rows are. Rows without a key may go to any partition, so they go to one
of the task's own. A row with a key, or with a partition, has only one possible partition: if another task owns it, the
batch is aborted and written again with a shuffle. Copying a topic into another one with the same number of partitions
needs no shuffle. Only the rows show whether this works: the sink tries it, and stops trying after the first batch of a
run for which it does not work.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

# The columns of a record; others are not written.
_COLUMNS: Final = ("key", "value", "headers", "partition")


class ForeignPartitionError(RuntimeError):
    """A task has rows for partitions that another task owns."""


class TaskPartitions(NamedTuple):
    """How many tasks share out how many partitions of a topic."""

    tasks: int
    partitions: int


def task_partitions_of(df: DataFrame, partitions: int) -> TaskPartitions | None:
    """Returns how the tasks of a DataFrame of foreachBatch share out the partitions of a topic; None where the tasks
    are not known or are too many."""
    try:
        plan: Any = df._jdf.logicalPlan()
        if plan.getClass().getSimpleName() != "LogicalRDD":
            return None  # Its tasks could only be counted by planning them.
        tasks = int(plan.rdd().getNumPartitions())
    except Exception:
        return None  # These names of Spark are not public.
    return TaskPartitions(tasks, partitions) if 0 < tasks <= partitions else None


def select_record_columns(df: DataFrame) -> DataFrame:
    """Returns the DataFrame with only the columns of a record."""
    names = [name for name in _COLUMNS if name in df.columns]
    return df if sorted(names) == sorted(df.columns) else df.select(*names)


def assign_own_partitions(rows: pa.RecordBatch, task_partitions: TaskPartitions, number: int) -> pa.Array:
    """Returns the partitions of a task's rows, all of them its own; raises ForeignPartitionError."""
    import numpy as np

    from strandline.client.columnar.compiled import kernels
    from strandline.client.columnar.table_encoder import TableColumns, partitions_of

    assert 0 <= number < task_partitions.tasks, "tasks are numbered"

    def column(name: str) -> Any:
        return rows.column(name) if name in rows.schema.names else None

    columns = TableColumns(rows.num_rows, column("key"), column("value"), None, None, column("partition"))
    own = list(range(number, task_partitions.partitions, task_partitions.tasks))
    random.shuffle(own)  # so that small batches do not all go to the first partition
    partitions = partitions_of(
        columns, partition_count=task_partitions.partitions, sticky=own, kernels=kernels()
    )
    if (np.asarray(partitions) % task_partitions.tasks != number).any():
        raise ForeignPartitionError(
            f"task {number} of {task_partitions.tasks} has rows for partitions of other tasks"
        )
    return partitions
