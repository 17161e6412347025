"""A topic as a table: the last record of each key, read again for every batch.

Spark plans a batch read of a Python source once for each DataFrame: a stream joined with it would see the topic as it
was when the query began. So the tasks themselves look up the beginnings and ends of partitions, each time that they
run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from strandline.spark.cluster import ClusterView
from strandline.spark.columns import HEADERS_SCHEMA
from strandline.spark.offsets import OffsetRange
from strandline.spark.options import read_options

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

# The additional columns that a row must have, by which the rows of a key are ordered.
POSITION_COLUMNS: Final = ("_topic", "_partition", "_offset", "_timestamp")


def table_records(session: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """Returns every record that is in the topics when a task runs."""
    tasks = session.sparkContext.defaultParallelism
    return session.range(0, tasks, 1, tasks).mapInArrow(_reader(dict(options), tasks), HEADERS_SCHEMA)


def last_row_per_key(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Returns the last row of each key, by POSITION_COLUMNS.

    Within a partition the offset tells which row is the last. A key moves to another partition when its topic gets more
    of them, and between partitions only timestamps can tell. Rows of files have no offsets and come before all others.
    """
    from pyspark.sql import functions as f

    def last(of: DataFrame, columns: Sequence[str], order: Column) -> DataFrame:
        others = [name for name in rows.columns if name not in columns]
        rows_by_key = of.groupBy(*columns).agg(f.max_by(f.struct(*others), order).alias("row"))
        # With the columns themselves Spark knows how the rows are distributed and sorted, and does neither again.
        return rows_by_key.select(*columns, "row.*")

    by_partition = list(dict.fromkeys((*keys, "_topic", "_partition")))
    ends = last(rows.repartition(*keys), by_partition, f.struct("_offset"))
    is_of_topic = f.col("_offset").isNotNull()
    return last(ends, keys, f.struct(is_of_topic, "_timestamp", "_topic", "_partition")).select(*rows.columns)


def _reader(
    options: dict[str, str], tasks: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(shares: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from strandline.spark.range_reader import read_range

        parsed_options = read_options(options, is_stream=False)
        for share in shares:
            for number in share.column("id").to_pylist():
                with ClusterView(parsed_options) as cluster:
                    mine = [
                        partition for at, partition in enumerate(cluster.partitions()) if at % tasks == number
                    ]
                    start, end = cluster.earliest(mine), cluster.latest(mine)
                for partition in mine:
                    yield from read_range(
                        OffsetRange(
                            topic=partition.topic,
                            partition=partition.partition,
                            start=start[partition],
                            end=end[partition],
                        ),
                        parsed_options,
                    )

    return read
