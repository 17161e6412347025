"""Avro values as columns of a DataFrame, by the compiled decoder: no jar, and errors as values.

There are two ways, with the same result. `format("strandline-avro")`, after `register` was called, decodes in the task
that reads the records: the values are in Arrow's memory in a Python process there, and Spark gets columns instead of
bytes. `decode_avro` decodes a column of any DataFrame. For that Spark has to send the column to Python and back.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from strandline.avro.framing import decoder_of
from strandline.avro.schema import AvroSource
from strandline.spark.micro_batches import StreamReader
from strandline.spark.options import OptionError
from strandline.spark.registry_values import DECODED as DECODED
from strandline.spark.registry_values import ERROR as ERROR
from strandline.spark.source import BatchReader, StrandlineSource

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
    from pyspark.sql.types import StructType

AVRO_FORMAT: Final = "strandline-avro"
AVRO_OPTION: Final = "avro"  # an AvroSource as JSON


def register(spark: SparkSession) -> None:
    """Makes `format("strandline-avro")` known to a session."""
    spark.dataSource.register(AvroTopicSource)


class AvroTopicSource(StrandlineSource):
    """`format("strandline")` with two columns more: DECODED and ERROR."""

    @classmethod
    def name(cls) -> str:
        return AVRO_FORMAT

    def _avro(self) -> AvroSource:
        text = self.options.get(AVRO_OPTION)
        if not text:
            raise OptionError(f"the option {AVRO_OPTION} is missing: give it AvroSource(…).to_json()")
        return AvroSource.from_json(text)

    def schema(self) -> str:
        kind = _spark_type(self._avro()).simpleString()
        return f"{self._record_columns()}, {DECODED} {kind}, {ERROR} string"

    def reader(self, schema: StructType) -> DataSourceReader:
        reader: Any = super().reader(schema)
        return AvroBatchReader(reader._options, self._avro())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        reader: Any = super().streamReader(schema)
        return AvroStreamReader(reader._options, self._avro())


class AvroBatchReader(BatchReader):
    """Reads a batch and decodes its values."""

    def __init__(self, options: Any, avro: AvroSource) -> None:
        super().__init__(options)
        self._avro = avro

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _with_decoded(super().read(partition), self._avro)


class AvroStreamReader(StreamReader):
    """Reads micro-batches and decodes their values."""

    def __init__(self, options: Any, avro: AvroSource) -> None:
        super().__init__(options)
        self._avro = avro

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _with_decoded(super().read(partition), self._avro)


def _with_decoded(batches: Iterator[pa.RecordBatch], avro: AvroSource) -> Iterator[pa.RecordBatch]:
    decoder = _cached_decoder(avro)
    for batch in batches:
        decoded, errors = decoder.decode(batch.column("value"))
        names = [*batch.schema.names, DECODED, ERROR]
        yield pa.RecordBatch.from_arrays([*batch.columns, decoded, errors], names=names)


def decode_avro(column: str, avro: AvroSource) -> Column:
    """Returns a column with a struct of DECODED and ERROR, decoded from a column of Avro values."""
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.types import StringType, StructField, StructType

    def decode(values: pa.Array) -> pa.Array:
        return pa.StructArray.from_arrays(_cached_decoder(avro).decode(values), names=[DECODED, ERROR])

    result = StructType([StructField(DECODED, _spark_type(avro)), StructField(ERROR, StringType())])
    make_function: Any = arrow_udf  # PySpark's stubs only know functions of a fixed number of columns
    # Otherwise Spark would copy the call into filters too, and decode everything twice.
    function = make_function(decode, result).asNondeterministic()
    decoded: Column = function(column)
    return decoded


def _spark_type(avro: AvroSource) -> Any:
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(_cached_decoder(avro).type)


@cache
def _cached_decoder(avro: AvroSource) -> Any:
    """Returns the decoder of a schema, one for all batches of a process: compiling its program takes longer than
    decoding a small batch."""
    return decoder_of(avro)
