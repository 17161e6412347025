"""Input partitions of a read: shares offsets out among tasks, and reads the rows of one task.

Batches and streams plan and read them alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from strandline.spark.offsets import OffsetRange, Offsets, ranges_between, split_ranges
from strandline.spark.options import ReadOptions

if TYPE_CHECKING:
    import pyarrow as pa


class OffsetRangePartition(InputPartition):
    """The range of offsets that one task reads."""

    def __init__(self, offset_range: OffsetRange) -> None:
        super().__init__((offset_range.topic, offset_range.partition, offset_range.start, offset_range.end))

    @property
    def offset_range(self) -> OffsetRange:
        """The range, from the values that Spark has pickled."""
        topic, partition, start, end = self.value
        return OffsetRange(topic=topic, partition=partition, start=start, end=end)


def plan_input_partitions(start: Offsets, end: Offsets, options: ReadOptions) -> list[InputPartition]:
    """Returns an input partition for each task, of the offsets between two positions."""
    ranges = split_ranges(
        ranges_between(start, end),
        partitions_min=options.partitions_min,
        records_max=options.records_per_partition_max,
    )
    return [OffsetRangePartition(each) for each in ranges]


def read_partition(partition: InputPartition, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yields the rows of one task. Spark makes an empty partition of its own where there is nothing to read."""
    if not isinstance(partition, OffsetRangePartition):
        return iter(())
    from strandline.spark.range_reader import read_range

    if options.registry is None:
        return read_range(partition.offset_range, options)
    from strandline.spark.registry_values import with_decoded

    # The schema of a value may be named by a header.
    batches = read_range(partition.offset_range, replace(options, include_headers=True))
    return with_decoded(batches, options.registry, keep_headers=options.include_headers)
