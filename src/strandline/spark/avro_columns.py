"""Avro values as columns of a DataFrame, by the compiled decoder: no jar, and errors as values.

There are two ways, with the same result. `format("strandline-avro")`, once `register` was called, decodes where records
are read: values are in Arrow's memory in a Python process there anyway, and Spark gets columns instead of bytes.
`decoded_avro` decodes a column of any DataFrame, for which Spark has to send it to Python and back.
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
from strandline.spark.source import BatchReader, StrandlineSource

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
    from pyspark.sql.types import StructType

AVRO_FORMAT: Final = "strandline-avro"
AVRO_OPTION: Final = "avro"  # an AvroSource as JSON
# Columns behind those of a record: the fields, and why there are none.
DECODED: Final = "decoded"
ERROR: Final = "decode_error"


def register(spark: SparkSession) -> None:
    spark.dataSource.register(AvroTopicSource)


class AvroTopicSource(StrandlineSource):
    """`format("strandline")` with two columns more."""

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
        return f"{super().schema()}, {DECODED} {kind}, {ERROR} string"

    def reader(self, schema: StructType) -> DataSourceReader:
        reader: Any = super().reader(schema)
        return AvroBatchReader(reader._options, self._avro())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        reader: Any = super().streamReader(schema)
        return AvroStreamReader(reader._options, self._avro())


class AvroBatchReader(BatchReader):
    def __init__(self, options: Any, avro: AvroSource) -> None:
        super().__init__(options)
        self._avro = avro

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _with_columns(super().read(partition), self._avro)


class AvroStreamReader(StreamReader):
    def __init__(self, options: Any, avro: AvroSource) -> None:
        super().__init__(options)
        self._avro = avro

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _with_columns(super().read(partition), self._avro)


def _with_columns(batches: Iterator[pa.RecordBatch], avro: AvroSource) -> Iterator[pa.RecordBatch]:
    decoder = _kept(avro)
    for batch in batches:
        found, errors = decoder.decode(batch.column("value"))
        names = [*batch.schema.names, DECODED, ERROR]
        yield pa.RecordBatch.from_arrays([*batch.columns, found, errors], names=names)


def decoded_avro(column: str, avro: AvroSource) -> Column:
    """A struct of DECODED and ERROR."""
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.types import StringType, StructField, StructType

    def decode(values: pa.Array) -> pa.Array:
        return pa.StructArray.from_arrays(_kept(avro).decode(values), names=[DECODED, ERROR])

    result = StructType([StructField(DECODED, _spark_type(avro)), StructField(ERROR, StringType())])
    make_function: Any = arrow_udf  # its stubs know functions of a fixed number of columns only
    # Otherwise Spark would put it into filters too, and decode everything twice.
    function = make_function(decode, result).asNondeterministic()
    found: Column = function(column)
    return found


def _spark_type(avro: AvroSource) -> Any:
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(_kept(avro).type)


@cache
def _kept(avro: AvroSource) -> Any:
    """One decoder for all batches of a process: making its program takes longer than decoding a small batch."""
    return decoder_of(avro)
