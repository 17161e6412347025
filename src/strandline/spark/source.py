"""`format("strandline")`: the data source that Spark calls, for batches and streams, reading and writing.

Spark creates these objects in one Python process and uses copies of them in others, so they hold only options and no
open connections. Only the reader of a stream keeps connections, in the process in which Spark asks for offsets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from strandline.serde.registry.schemas import Schema
from strandline.spark.input_partitions import plan_input_partitions, read_partition
from strandline.spark.options import (
    OptionError,
    ReadOptions,
    RegistryValues,
    WriteOptions,
    read_options,
    registry_options,
    write_options,
)
from strandline.spark.runtime.tcp_quickack import QuickAckOnArrival

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamReader, DataSourceStreamWriter, DataSourceWriter
    from pyspark.sql.types import StructType


class StrandlineSource(DataSource):
    """The data source `strandline`."""

    _registry: RegistryValues | None = None

    @classmethod
    def name(cls) -> str:
        return "strandline"

    def schema(self) -> Any:
        """Returns the columns of the source, as Spark asks before it asks for a reader. With the option `registry`
        there are two more: the decoded value, and the reason why there is none. The reader's schema is looked up here.
        Spark keeps this object, so the schema stays the same as long as the query runs."""
        registry = registry_options(self.options)
        if registry is None:
            return self._record_columns()
        from strandline.spark.registry_values import resolve_reader, source_schema

        self._registry = resolve_reader(
            registry.settings,
            subject=registry.subject,
            schema=None if registry.schema is None else Schema(registry.schema, registry.schema_type),
            message=registry.message,
        )
        return source_schema(self._registry, include_headers=self._includes_headers)

    @property
    def _includes_headers(self) -> bool:
        return str(self.options.get("includeHeaders", "false")).strip().lower() == "true"

    def _record_columns(self) -> str:
        from strandline.spark.columns import HEADERS_SCHEMA, SCHEMA

        return HEADERS_SCHEMA if self._includes_headers else SCHEMA

    def _read_options(self, *, is_stream: bool) -> ReadOptions:
        options = read_options(self.options, is_stream=is_stream)
        return options if self._registry is None else replace(options, registry=self._registry)

    def reader(self, schema: StructType) -> DataSourceReader:
        from strandline.spark.runtime.worker_setup import freeze_loaded_modules

        freeze_loaded_modules()
        self._check_schema(schema)
        return BatchReader(self._read_options(is_stream=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from strandline.spark.micro_batches import StreamReader

        self._check_schema(schema)
        return StreamReader(self._read_options(is_stream=True))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from strandline.spark.runtime.worker_setup import freeze_loaded_modules
        from strandline.spark.sink.at_least_once import BatchWriter

        freeze_loaded_modules()
        return BatchWriter(self._write_options(schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from strandline.spark.runtime.worker_setup import freeze_loaded_modules
        from strandline.spark.sink.at_least_once import StreamWriter

        freeze_loaded_modules()
        # Spark says "overwrite" for the output mode complete. Its own format appends the whole result each time, too.
        writer: DataSourceStreamWriter = StreamWriter(self._write_options(schema, False), schema.names)
        return writer

    def _check_schema(self, schema: StructType) -> None:
        """Raises OptionError if the user gave another schema with `.schema(…)`; Spark would complain of each task's
        rows."""
        own = self._record_columns()
        columns = ",".join(f"{field.name}{field.dataType.simpleString()}" for field in schema.fields)
        if not columns.startswith(own.replace(" ", "")):  # Decoded columns follow.
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


class BatchReader(QuickAckOnArrival, DataSourceReader):
    """Reads the offsets between two positions once, for `spark.read`."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        from strandline.spark.cluster import ClusterView

        with ClusterView(self._options) as cluster:
            start = cluster.resolve(self._options.start, "starting")
            end = cluster.resolve(self._options.end, "ending")
        for partition in sorted(end):
            if partition in start and start[partition] > end[partition] and self._options.end.offset is None:
                raise OptionError(
                    f"{partition}: the starting offset {start[partition]} is after the ending offset {end[partition]}"
                )
        return plan_input_partitions(start, end, self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(partition, self._options)
