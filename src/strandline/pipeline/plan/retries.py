"""Retry topics as a source: a record is read again when it is due, with its original topic, partition and offset. A
retry topic has one delay, so its records are due in the order of their offsets. A batch ends before the first record
that is not due; no task waits for that record, and it is not skipped, because the next batch begins at Spark's own
offsets. A record's timestamp is the time at which it was written, so brokers can tell the first offset whose record is
younger than the delay.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from strandline.client.deadletter import letters as dlq
from strandline.client.deadletter.letters import RetryPolicy
from strandline.spark.micro_batches import StreamReader
from strandline.spark.offsets import Offsets, offsets_from_json, offsets_to_json
from strandline.spark.options import ReadOptions, read_options
from strandline.spark.source import StrandlineSource

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.datasource import DataSourceStreamReader
    from pyspark.sql.types import StructType

RETRY_FORMAT: Final = "strandline-retry"
DELAYS_OPTION: Final = "delays"  # milliseconds by topic, as JSON
_NOT_FOR_RETRIES: Final = ("minoffsetspertrigger", "maxtriggerdelay")
_ATTEMPT: Final = dlq.ATTEMPT


class RetrySource(StrandlineSource):
    """`format("strandline")` that reads records when they are due."""

    @classmethod
    def name(cls) -> str:
        return RETRY_FORMAT

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return RetryReader(
            read_options(self.options, is_stream=True), json.loads(self.options[DELAYS_OPTION])
        )


class RetryReader(StreamReader):
    """Plans micro-batches of the records that are due."""

    def __init__(self, options: ReadOptions, delays_ms: dict[str, int]) -> None:
        super().__init__(options)
        self._delays_ms = delays_ms

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        due = self._due_ends(offsets_from_json(super().latestOffset(start, limit)))
        # A clock that is set back must not make an end smaller than the start.
        before = {} if start is None else offsets_from_json(start)
        return offsets_to_json(
            {partition: max(offset, before.get(partition, offset)) for partition, offset in due.items()}
        )

    def _due_ends(self, ends: Offsets) -> Offsets:
        """Returns the offsets up to which records are due, at most these ends."""
        now_ms = time.time_ns() // 1_000_000
        not_due_from_ms = {partition: now_ms - self._delays_ms[partition.topic] + 1 for partition in ends}
        first = self._view().consumer.offsets_for_times(not_due_from_ms)
        due = {}
        for partition, end in ends.items():
            at = first[partition]
            due[partition] = end if at is None else min(end, at.offset)
        return due


def retry_options(options: Mapping[str, str]) -> dict[str, str]:
    """Returns the options of the source that its retry topics need too. Retry topics are always read from their
    beginning, and no batch waits for more of their records, because each record is due at its own time."""
    inherited = {
        name: value
        for name, value in options.items()
        if not name.lower().startswith("starting") and name.lower() not in _NOT_FOR_RETRIES
    }
    return {**inherited, "startingOffsets": "earliest"}


def failed_attempts(headers: Column) -> Column:
    """Returns the number of failed attempts at a record, from its headers."""
    from pyspark.sql import functions as f

    mine = f.filter(headers, lambda each: each["key"] == _ATTEMPT)
    text = f.decode(f.try_element_at(mine, f.lit(1))["value"], "utf-8")
    return f.coalesce(text.try_cast("int"), f.lit(0))


def without_attempt_header(records: DataFrame) -> DataFrame:
    """Returns records of a topic without the header of attempts, which has a meaning only in a retry topic."""
    return records.withColumn("_headers", _other_headers("_headers"))


def as_source_records(rows: DataFrame, policy: RetryPolicy, topics: tuple[str, ...]) -> DataFrame:
    """Returns rows of retry topics with the columns of ORIGIN: the original topic, partition and offset of each record,
    and the number of failed attempts as a header. The topic and that number come from the retry topic's name, because
    headers can contain anything."""
    from pyspark.sql import functions as f

    numbered = {
        name: (topic, number)
        for topic in topics
        for number, name in enumerate(policy.retry_topics(topic), start=1)
    }
    names = f.create_map(*(f.lit(each) for name, (topic, _) in numbered.items() for each in (name, topic)))
    numbers = f.create_map(
        *(f.lit(each) for name, (_, number) in numbered.items() for each in (name, str(number)))
    )
    attempt = f.struct(
        f.lit(_ATTEMPT).alias("key"), f.encode(numbers[f.col("topic")], "utf-8").alias("value")
    )
    return rows.select(
        names[f.col("topic")].alias("_topic"),
        _header(dlq.ORIGINAL_PARTITION).try_cast("int").alias("_partition"),
        _header(dlq.ORIGINAL_OFFSET).try_cast("bigint").alias("_offset"),
        f.timestamp_millis(_header(dlq.ORIGINAL_TIMESTAMP).try_cast("bigint")).alias("_timestamp"),
        f.col("key").alias("_key"),
        f.col("value").alias("_value"),
        f.concat(f.coalesce(_other_headers("headers"), f.array()), f.array(attempt)).alias("_headers"),
    )


def _other_headers(column: str) -> Column:
    from pyspark.sql import functions as f

    return f.filter(f.col(column), lambda each: each["key"] != _ATTEMPT)


def _header(name: str) -> Column:
    from pyspark.sql import functions as f

    mine = f.filter(f.col("headers"), lambda each: each["key"] == name)
    return f.decode(f.try_element_at(mine, f.lit(1))["value"], "utf-8")
