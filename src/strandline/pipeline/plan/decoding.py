"""Decodes the values of a source's records into columns, or gives the reason why that is not possible. The resulting
rows have the source's columns, those of ORIGIN, and FAILURE, which is null for a decoded value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.pipeline.plan.dead_letters import FAILURE, FAILURE_TYPE, failure
from strandline.pipeline.plan.files import FIELDS
from strandline.pipeline.spec.registry import RegistryUse
from strandline.pipeline.spec.spec import ORIGIN, Source
from strandline.pipeline.spec.stages import CORRUPT
from strandline.pipeline.spec.types import quoted
from strandline.serde.registry.schemas import Schema
from strandline.spark.avro_columns import decode_avro
from strandline.spark.options import RegistryValues
from strandline.spark.registry_values import (
    DECODED,
    ERROR,
    decode_column,
    resolve_reader,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# The columns of the decoders of Avro and of registry values.
_DECODED: Final = "_decoded"
_DECODE_ERROR: Final = "_decode_error"
# Fields of the JSON text into which a value is put before Spark reads it.
_VALUES: Final = "values_of_the_record"
_END: Final = "end_of_the_record"
_NO_AVRO: Final = "the value is not Avro of the schema: "


def decode_records(records: DataFrame, source: Source, *, waits: bool = True) -> DataFrame:
    """Returns the rows of a source, from its records. Without `waits` an unavailable schema registry is
    an error; otherwise it is waited for."""
    from pyspark.sql import functions as f

    if source.tombstones == "drop":
        records = records.where("_value IS NOT NULL")
    failures = []
    if source.tombstones == "dead-letter" and source.decode.format != "raw":
        failures.append(_failed(f.col("_value").isNull(), "the value is null: a tombstone"))
    match "registry" if source.decode.registry is not None else source.decode.format:
        case "registry":
            records = _from_registry(records, source, waits)
            columns = [f.col(f"{_DECODED}.*")]
            failures.append(_failed(f.col(_DECODE_ERROR).isNotNull(), f.col(_DECODE_ERROR)))
        case "json":
            # The generator in between has the value read once. Without it Spark would copy the expression into each
            # filter that uses it, and would read the value again for each rule and each required field.
            records = records.select("*", f.inline(f.array(_from_json(source))))
            records = records.withColumn("_decoded", f.get(_VALUES, f.lit(0)))
            columns = _fields(source, "_decoded")
            has_value = f.col("_value").isNotNull()
            is_single = (f.size(_VALUES) == 1) & f.col(_END).isNotNull()
            # A value that is not an object, such as null, gives no element.
            is_single = is_single & f.col(CORRUPT).isNull() & f.col("_decoded").isNotNull()
            broken = ~f.coalesce(is_single, f.lit(False))
            failures.append(
                _failed(has_value & broken, "the value is not a JSON object that fits the schema")
            )
            failures += _missing(source, "_decoded")
        case "avro":
            records, columns = _from_avro(records, source)
            failures.append(
                _failed(f.col(_DECODE_ERROR).isNotNull(), f.concat(f.lit(_NO_AVRO), _DECODE_ERROR))
            )
        case "csv":
            columns = _fields(source, FIELDS)
            failures.append(_failed(f.col(CORRUPT).isNotNull(), "the line is not CSV that fits the schema"))
            failures += _missing(source, FIELDS)
        case "parquet":
            columns = [f.col(f"{FIELDS}.*")] if not source.decode.columns else _fields(source, FIELDS)
            failures += _missing(source, FIELDS)
        case "text":
            columns = [f.col("_value").cast("string").alias("value")]
            failures.append(
                _failed(~f.is_valid_utf8(f.col("_value").cast("string")), "the value is not UTF-8")
            )
        case _:
            columns = [f.col("_key").alias("key"), f.col("_value").alias("value")]
    failure_column = f.coalesce(*failures) if failures else f.lit(None).cast(FAILURE_TYPE)
    return records.select(*columns, *ORIGIN, failure_column.alias(FAILURE))


def _from_json(source: Source) -> Column:
    """Returns the list of the objects in a value, and a mark after it. Spark reads the first JSON value of a text and
    ignores the rest, unless that value is inside another one. The new line ends a comment, if comments are allowed."""
    from pyspark.sql import functions as f

    fields = [f"{quoted(each.name)} {each.type}" for each in source.decode.columns]
    options = {
        **source.decode.options,
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": CORRUPT,
    }
    schema = f"{_VALUES} array<struct<{', '.join(fields)}>>, {_END} boolean, `{CORRUPT}` string"
    before, after = f'{{"{_VALUES}":[', f'\n],"{_END}":true}}'
    text = f.concat(f.lit(before), f.col("_value").cast("string"), f.lit(after))
    return f.from_json(text, schema, options)


def _from_avro(records: DataFrame, source: Source) -> tuple[DataFrame, list[Column]]:
    """Decodes Avro values. The values of a stream were decoded by the source already."""
    assert source.decode.avro is not None
    if _DECODED not in records.columns:
        rows = records.withColumn("_found", decode_avro("_value", source.decode.avro))
        records = rows.select(*ORIGIN, *decoded_columns("_found."))
    return records, _fields(source, _DECODED)


def _from_registry(records: DataFrame, source: Source, waits: bool) -> DataFrame:
    """Decodes values of a schema registry. The values of a stream were decoded by the source already."""
    use = source.decode.registry
    assert use is not None
    if _DECODED in records.columns:
        return records
    rows = records.withColumn(
        "_found", decode_column("_value", "_headers", registry_reader(use, waits=waits))
    )
    return rows.select(*ORIGIN, *decoded_columns("_found."))


def registry_reader(use: RegistryUse, *, waits: bool = True) -> RegistryValues:
    """Returns the decoding options of a source, with its reader's schema."""
    schema = None if use.schema is None else Schema(use.schema, use.schema_type)
    return resolve_reader(use.settings, subject=use.subject, schema=schema, message=use.message, waits=waits)


def decoded_columns(prefix: str = "") -> list[Column]:
    """Returns the columns of a decoder of the Spark source, under the names that they have here."""
    from pyspark.sql import functions as f

    names = {DECODED: _DECODED, ERROR: _DECODE_ERROR}
    return [f.col(f"{prefix}{name}").alias(ours) for name, ours in names.items()]


def _fields(source: Source, struct: str) -> list[Column]:
    from pyspark.sql import functions as f

    return [f.col(f"{struct}.{quoted(each.name)}").alias(each.name) for each in source.decode.columns]


def _missing(source: Source, struct: str) -> list[Column]:
    """Returns the failures of rows in which a required field is null."""
    from pyspark.sql import functions as f

    failures = []
    for each in source.decode.columns:
        if each.required:
            absent = f.col("_value").isNotNull() & f.col(f"{struct}.{quoted(each.name)}").isNull()
            failures.append(_failed(absent, f"the field {each.name} is missing or null"))
    return failures


def _failed(when: Column, error: str | Column) -> Column:
    from pyspark.sql import functions as f

    return f.when(when, failure("decode", error))
