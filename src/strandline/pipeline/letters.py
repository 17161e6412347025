"""Dead letters as rows: a record that could not be decoded, or that a rule refuses, with why and where it came from.

Key, value and the record's own headers stay as they were; ours have the names that the client's dead letters have, and
`dlq.stage`. So `strandline dlq redrive` puts them back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.client import deadletter_letters as dlq

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Null, or why the row is a dead letter: a struct of stage and error.
FAILURE: Final = "_failure"
STAGE: Final = "dlq.stage"
OUTPUT: Final = "topic string, key binary, value binary, headers array<struct<key: string, value: binary>>"
_ERROR_CHARACTERS_MAX: Final = dlq.ERROR_BYTES_MAX // 4  # of up to four bytes each


def letters(rows: DataFrame, topic: str | None, pipeline: str) -> DataFrame:
    """Rows of a stage that have a failure, as they are written. `topic` is None where each source topic has its own."""
    from pyspark.sql import functions as f

    origin = {
        dlq.ERROR: f.left(f.col(f"{FAILURE}.error"), f.lit(_ERROR_CHARACTERS_MAX)),
        STAGE.encode(): f.col(f"{FAILURE}.stage"),
        dlq.GROUP: f.lit(pipeline),
        dlq.ATTEMPT: f.lit("1"),
        dlq.ORIGINAL_TOPIC: f.col("_topic"),
        dlq.ORIGINAL_PARTITION: f.col("_partition").cast("string"),
        dlq.ORIGINAL_OFFSET: f.col("_offset").cast("string"),
        dlq.ORIGINAL_TIMESTAMP: f.unix_millis("_timestamp").cast("string"),
    }
    ours = f.array(*(_header(name.decode(), value) for name, value in origin.items()))
    prefix, redriven = dlq.PREFIX.decode(), dlq.REDRIVEN.decode()
    theirs = f.filter(
        f.coalesce(f.col("_headers"), f.array().cast("array<struct<key:string,value:binary>>")),
        lambda each: ~f.startswith(each["key"], f.lit(prefix)) | (each["key"] == redriven),
    )
    return rows.where(f"{FAILURE} IS NOT NULL").select(
        (f.concat(f.col("_topic"), f.lit(".dlq")) if topic is None else f.lit(topic)).alias("topic"),
        f.col("_key").alias("key"),
        f.col("_value").alias("value"),
        # A record from a file has no coordinates in a topic.
        f.concat(theirs, f.filter(ours, lambda each: each["value"].isNotNull())).alias("headers"),
    )


def _header(name: str, value: Column) -> Column:
    from pyspark.sql import functions as f

    return f.struct(f.lit(name).alias("key"), f.encode(value, "utf-8").alias("value"))
