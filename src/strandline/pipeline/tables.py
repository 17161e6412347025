"""A topic as a table: the last record of each key, read anew for every batch.

Spark plans a batch read of a Python source once for each DataFrame: a stream joined with it would see the topic as it
was when the query began. So tasks find out themselves where partitions begin and end, each time that they run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from strandline.spark.cluster import ClusterView
from strandline.spark.columns import HEADERS_SCHEMA
from strandline.spark.offsets import OffsetRange
from strandline.spark.options import read_options

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def table_rows(session: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """The last record of each key, tombstones left out."""
    tasks = session.sparkContext.defaultParallelism
    records = session.range(0, tasks, 1, tasks).mapInArrow(_reader(dict(options), tasks), HEADERS_SCHEMA)
    from pyspark.sql import functions as f

    by_key = records.groupBy("topic", "partition", "key")
    rows = by_key.agg(f.max_by(f.struct("*"), f.col("offset")).alias("record"))
    return rows.select("record.*").where("value IS NOT NULL AND key IS NOT NULL")


def _reader(
    options: dict[str, str], tasks: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(shares: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from strandline.spark.reading import read_range

        wanted = read_options(options, is_stream=False)
        for share in shares:
            for number in share.column("id").to_pylist():
                with ClusterView(wanted) as cluster:
                    mine = [where for at, where in enumerate(cluster.partitions()) if at % tasks == number]
                    start, end = cluster.earliest(mine), cluster.latest(mine)
                for where in mine:
                    yield from read_range(
                        OffsetRange(
                            topic=where.topic, partition=where.partition, start=start[where], end=end[where]
                        ),
                        wanted,
                    )

    return read
