"""`format("strandline")`: what Spark calls, for batches and streams, reading and writing.

Spark makes these objects in one Python process and uses copies of them in others, so they hold options and nothing
that is open; `stream` keeps connections only in the process in which Spark asks for offsets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from strandline.spark.input_partitions import plan_input_partitions, read_partition
from strandline.spark.options import OptionError, ReadOptions, WriteOptions, read_options, write_options
from strandline.spark.runtime.tcp_quickack import AcknowledgedOnArrival

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamReader, DataSourceStreamWriter, DataSourceWriter
    from pyspark.sql.types import StructType


class StrandlineSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "strandline"

    def schema(self) -> str:
        from strandline.spark.columns import HEADERS_SCHEMA, SCHEMA

        include = str(self.options.get("includeHeaders", "false")).strip().lower() == "true"
        return HEADERS_SCHEMA if include else SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        from strandline.spark.runtime.worker_setup import leave_modules_alone

        leave_modules_alone()
        self._check_schema(schema)
        return BatchReader(read_options(self.options, is_stream=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from strandline.spark.micro_batches import StreamReader

        self._check_schema(schema)
        return StreamReader(read_options(self.options, is_stream=True))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from strandline.spark.runtime.worker_setup import leave_modules_alone
        from strandline.spark.sink.at_least_once import BatchWriter

        leave_modules_alone()
        return BatchWriter(self._write_options(schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from strandline.spark.runtime.worker_setup import leave_modules_alone
        from strandline.spark.sink.at_least_once import StreamWriter

        leave_modules_alone()
        # Spark says "overwrite" for the output mode complete. Its own format appends the whole result each time, too.
        writer: DataSourceStreamWriter = StreamWriter(self._write_options(schema, False), schema.names)
        return writer

    def _check_schema(self, schema: StructType) -> None:
        """A user may give one with `.schema(…)`, and Spark would complain of each task's rows instead."""
        own = StrandlineSource.schema(self)
        given = ",".join(f"{field.name}{field.dataType.simpleString()}" for field in schema.fields)
        if not given.startswith(own.replace(" ", "")):  # Those of `strandline-avro` follow.
            raise OptionError(
                f"the columns are always {own}: leave .schema(…) out, and cast or decode them in the DataFrame"
            )

    def _write_options(self, schema: StructType, overwrite: bool) -> WriteOptions:
        from strandline.spark.sink.rows import check_columns

        if overwrite:
            raise OptionError("topics are only ever appended to: use mode append")
        options = write_options(self.options)
        check_columns(schema, options.topic)
        return options


class BatchReader(AcknowledgedOnArrival, DataSourceReader):
    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        from strandline.spark.cluster import ClusterView

        with ClusterView(self._options) as cluster:
            start = cluster.resolve(self._options.start, "starting")
            end = cluster.resolve(self._options.end, "ending")
        for where in sorted(end):
            if where in start and start[where] > end[where] and self._options.end.offset is None:
                raise OptionError(
                    f"{where}: the starting offset {start[where]} is behind the ending offset {end[where]}"
                )
        return plan_input_partitions(start, end, self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(partition, self._options)
