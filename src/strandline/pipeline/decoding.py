"""Decodes the values of a source's records into columns, or says why that is not possible.

The rows that come out have the source's columns, those of ORIGIN, and FAILURE, which is null where all went well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.pipeline.letters import FAILURE
from strandline.pipeline.reading_stages import CORRUPT
from strandline.pipeline.spec import ORIGIN, Source

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def decoded(records: DataFrame, source: Source) -> DataFrame:
    from pyspark.sql import functions as f

    if source.tombstones == "drop":
        records = records.where("_value IS NOT NULL")
    failures = []
    if source.tombstones == "dead-letter" and source.decode.format != "raw":
        failures.append(_failed(f.col("_value").isNull(), "the value is null: a tombstone"))
    match source.decode.format:
        case "json":
            records = records.withColumn("_decoded", _from_json(source))
            columns = [f.col(f"_decoded.`{each.name}`").alias(each.name) for each in source.decode.columns]
            failures += _json_failures(source)
        case "text":
            columns = [f.col("_value").cast("string").alias("value")]
            failures.append(
                _failed(~f.is_valid_utf8(f.col("_value").cast("string")), "the value is not UTF-8")
            )
        case _:
            columns = [f.col("_key").alias("key"), f.col("_value").alias("value")]
    failure = f.coalesce(*failures) if failures else f.lit(None).cast("struct<stage: string, error: string>")
    return records.select(*columns, *ORIGIN, failure.alias(FAILURE))


def _from_json(source: Source) -> Column:
    from pyspark.sql import functions as f

    fields = [f"`{each.name}` {each.type}" for each in source.decode.columns]
    options = {
        **source.decode.options,
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": CORRUPT,
    }
    return f.from_json(f.col("_value").cast("string"), ", ".join([*fields, f"`{CORRUPT}` string"]), options)


def _json_failures(source: Source) -> list[Column]:
    from pyspark.sql import functions as f

    there = f.col("_value").isNotNull()
    # An empty text gives no struct at all.
    broken = f.col("_decoded").isNull() | f.col(f"_decoded.{CORRUPT}").isNotNull()
    found = [_failed(there & broken, "the value is no JSON object that fits the schema")]
    for each in source.decode.columns:
        if each.required:
            absent = there & f.col(f"_decoded.`{each.name}`").isNull()
            found.append(_failed(absent, f"the field {each.name} is missing or null"))
    return found


def _failed(when: Column, error: str) -> Column:
    from pyspark.sql import functions as f

    return f.when(when, f.struct(f.lit("decode").alias("stage"), f.lit(error).alias("error")))
