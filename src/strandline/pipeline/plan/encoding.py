"""Encodes the rows of a stage with the schema of a sink. Rows that do not fit the schema become dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from strandline.pipeline.plan.dead_letters import FAILURE, failure
from strandline.pipeline.spec.spec import ORIGIN, Sink
from strandline.pipeline.spec.types import quoted
from strandline.serde.registry.schemas import Schema
from strandline.spark.registry_values import DATA, ENCODE_ERROR, encode_column, resolve_writer

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ENCODED: Final = "_encoded"


def encoded_rows(
    rows: DataFrame, sink: Sink, columns: Sequence[str], *, is_trial: bool
) -> tuple[DataFrame, DataFrame | None, Column]:
    """Returns the rows to write, the refused rows with FAILURE, and the column of values. A stage without the columns
    of a record's origin cannot have dead letters: there a row that does not fit stops the query. A trial registers no
    schema."""
    from pyspark.sql import functions as f

    use = sink.encode
    assert use is not None
    schema = None if use.schema is None else Schema(use.schema, use.schema_type)
    writer = resolve_writer(use.settings, use.subject, schema=schema, message=use.message, is_trial=is_trial)
    encoded = rows.withColumn(_ENCODED, encode_column(f.struct(*map(quoted, columns)), writer))
    data, error = f.col(f"{_ENCODED}.{DATA}"), f.col(f"{_ENCODED}.{ENCODE_ERROR}")
    if any(name not in rows.columns for name in ORIGIN):
        refused = f.raise_error(f.concat(f.lit(f"sink {sink.target}: the row cannot be written: "), error))
        return encoded, None, f.when(error.isNotNull(), refused.cast("binary")).otherwise(data)
    letters = encoded.where(error.isNotNull()).withColumn(FAILURE, failure(f"sink {sink.target}", error))
    return encoded.where(error.isNull()), letters, data
