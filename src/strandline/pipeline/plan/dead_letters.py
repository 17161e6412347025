"""Writes dead letters as rows: records that could not be decoded, or that a rule refused, with the reason and their
origin. A record that is to be tried again has the same form, in a retry topic and with the time when it is due. The
column FAILURE decides which rows these are: `decoding.py` fills it for values, and `PipelinePlan._with_finish`
(plan.py) for rules.

Key, value and the record's own headers stay as they were; the pipeline's headers have the names that the client's dead
letters have, and `dlq.stage`. So `strandline dlq redrive` puts them back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.client.deadletter import letters as dlq
from strandline.client.deadletter.letters import RetryPolicy
from strandline.pipeline.plan.retries import failed_attempts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# The column that is null for a good row, and otherwise has the reason why the row is a dead letter.
FAILURE: Final = "_failure"
FAILURE_TYPE: Final = "struct<stage: string, error: string, is_retried: boolean>"
STAGE: Final = "dlq.stage"
OUTPUT: Final = "topic string, key binary, value binary, headers array<struct<key: string, value: binary>>"
_ERROR_CHARACTERS_MAX: Final = dlq.ERROR_BYTES_MAX // 4  # a character has up to four bytes


def failure(stage: str, error: str | Column, *, is_retried: bool = False) -> Column:
    """Returns the value of the column FAILURE: the stage that refused a row, and why."""
    from pyspark.sql import functions as f

    text = f.lit(error) if isinstance(error, str) else error
    return f.struct(f.lit(stage).alias("stage"), text.alias("error"), f.lit(is_retried).alias("is_retried"))


def dead_letter_records(
    rows: DataFrame, topic: str | None, pipeline: str, retry: RetryPolicy | None
) -> DataFrame:
    """Returns the rows of a stage that have a failure, as records to be written. `topic` is None if each source topic
    has a dead-letter topic of its own."""
    from pyspark.sql import functions as f

    attempt = f.lit(1) if retry is None else failed_attempts(f.col("_headers")) + 1
    dead = f.concat(f.col("_topic"), f.lit(".dlq")) if topic is None else f.lit(topic)
    again = retry_at = f.lit(None)
    if retry is not None:
        is_retried = f.col(f"{FAILURE}.is_retried") & f.col("_topic").isNotNull()
        is_retried = is_retried & (attempt <= len(retry.backoff_ms))
        name = f.concat(f.col("_topic"), f.lit(f".{retry.group}.retry."), attempt.cast("string"))
        again = f.when(is_retried, name)
        delay = f.try_element_at(f.array(*map(f.lit, retry.backoff_ms)), attempt)
        retry_at = f.when(is_retried, f.unix_millis(f.current_timestamp()) + delay)
    origin = {
        dlq.ERROR: f.left(f.col(f"{FAILURE}.error"), f.lit(_ERROR_CHARACTERS_MAX)),
        STAGE: f.col(f"{FAILURE}.stage"),
        dlq.GROUP: f.lit(pipeline),
        dlq.ATTEMPT: attempt.cast("string"),
        dlq.RETRY_AT: retry_at.cast("string"),
        dlq.ORIGINAL_TOPIC: f.col("_topic"),
        dlq.ORIGINAL_PARTITION: f.col("_partition").cast("string"),
        dlq.ORIGINAL_OFFSET: f.col("_offset").cast("string"),
        dlq.ORIGINAL_TIMESTAMP: f.unix_millis("_timestamp").cast("string"),
    }
    ours = f.array(*(_header(name, value) for name, value in origin.items()))
    prefix, redriven = dlq.PREFIX, dlq.REDRIVEN
    theirs = f.filter(
        f.coalesce(f.col("_headers"), f.array().cast("array<struct<key:string,value:binary>>")),
        lambda each: ~f.startswith(each["key"], f.lit(prefix)) | (each["key"] == redriven),
    )
    return rows.where(f"{FAILURE} IS NOT NULL").select(
        f.coalesce(again.cast("string"), dead).alias("topic"),
        f.col("_key").alias("key"),
        f.col("_value").alias("value"),
        # A record from a file has no coordinates in a topic.
        f.concat(theirs, f.filter(ours, lambda each: each["value"].isNotNull())).alias("headers"),
    )


def _header(name: str, value: Column) -> Column:
    from pyspark.sql import functions as f

    return f.struct(f.lit(name).alias("key"), f.encode(value, "utf-8").alias("value"))
