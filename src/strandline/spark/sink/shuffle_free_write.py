"""Writing without a shuffle: each task writes the rows that it has, to partitions that are its own.

Of `tasks` tasks the one with the number i owns the output partitions i, i + tasks, i + 2 * tasks and so on, so that no
two ever write to the same one, whatever their rows are. Rows without a key may go anywhere and go to the task's own.
Rows with a key, or that name a partition, have only one place: where it is another task's, nothing of the batch can
stay, and it is written again with a shuffle. A copy of a topic into one with as many partitions needs none either way.

Whether that works is seen when rows come: the sink tries, and the first batch of a run for which it does not work is
the last one that is tried.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

# What records are made of; other columns stay where they are.
_COLUMNS: Final = ("key", "value", "headers", "partition")


class ElsewhereError(RuntimeError):
    """A task has rows for partitions that are another task's."""


class Sharing(NamedTuple):
    """How the partitions of a topic are shared out."""

    tasks: int
    partitions: int


def sharing_of(df: DataFrame, partitions: int) -> Sharing | None:
    """For the DataFrame that foreachBatch is given; None where the tasks are not known or are too many."""
    try:
        plan: Any = df._jdf.logicalPlan()
        if plan.getClass().getSimpleName() != "LogicalRDD":
            return None  # Its tasks would have to be planned to be counted.
        tasks = int(plan.rdd().getNumPartitions())
    except Exception:
        return None  # These are no public names of Spark.
    return Sharing(tasks, partitions) if 0 < tasks <= partitions else None


def what_is_written(df: DataFrame) -> DataFrame:
    names = [name for name in _COLUMNS if name in df.columns]
    return df if sorted(names) == sorted(df.columns) else df.select(*names)


def places(rows: pa.RecordBatch, sharing: Sharing, number: int) -> pa.Array:
    """Where the rows of a task go, or ElsewhereError."""
    import numpy as np

    from strandline.client.columnar.compiled import kernels
    from strandline.client.columnar.table_encoder import TableColumns, partitions_of

    assert 0 <= number < sharing.tasks, "tasks are numbered"

    def column(name: str) -> Any:
        return rows.column(name) if name in rows.schema.names else None

    columns = TableColumns(rows.num_rows, column("key"), column("value"), None, None, column("partition"))
    own = list(range(number, sharing.partitions, sharing.tasks))
    random.shuffle(own)  # so that small batches do not all go to the first
    found = partitions_of(columns, partition_count=sharing.partitions, sticky=own, kernels=kernels())
    if (np.asarray(found) % sharing.tasks != number).any():
        raise ElsewhereError(f"task {number} of {sharing.tasks} has rows for partitions of other tasks")
    return found
