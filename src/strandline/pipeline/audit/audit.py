"""Compares a ledger of acknowledged records with the log, as one Spark job.

A ledger has a row for each acknowledged record: `id`, which no two records share, and where it is: `topic`, `partition`
and `offset`; if order matters also `key` and `sequence`, which grows from record to record of a key. It is a topic of
JSON values, or files of JSON lines or Parquet. The id of a record in the log is an SQL expression over its columns.

If the ledger's own topics are audited, a record must be at the offset that the ledger has for it. If other topics are
audited, such as those that a pipeline writes, an id may be anywhere in them.

Memory is bounded, however large both sides are: they are shuffled by id and merged sorted, then again by key to check
the order. Only counts by partition reach the driver, with a few samples of each.

The columns `told` (acknowledged) and `seen` (in the log) are also keys of the samples in the audit's JSON, so they keep
their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from strandline.pipeline.audit.report import AuditFinding, AuditReport

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

LEDGER_SCHEMA: Final = "id string, topic string, partition int, offset bigint, key string, sequence bigint"
TOPIC_PREFIX: Final = "topic:"
# Ids are divided by hash into this many groups for each sample, and each group gives one sample: there are enough
# samples even if two wrong ids fall into one group.
_GROUPS_PER_SAMPLE: Final = 4
_FLAGS: Final = ("lost", "duplicated", "misplaced", "reordered", "unexpected", "unnamed")


class AuditError(ValueError):
    """The audit cannot run; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The arguments of an audit. `topics` are the audited topics; if it is empty, those that the ledger names. With
    `with_order` the order is checked if the ledger has sequences."""

    ledger: str
    bootstrap_servers: str
    topics: tuple[str, ...] = ()
    record_id: str = "cast(value as string)"
    isolation_level: str = "read_committed"
    with_order: bool = True
    samples: int = 5
    client: Mapping[str, str] = field(default_factory=dict)


def run_audit(spark: SparkSession, audit: Audit) -> AuditReport:
    """Returns the report of an audit; raises AuditError."""
    from pyspark.sql import functions as f

    if audit.samples < 0:
        raise AuditError(f"samples cannot be {audit.samples}: give a number of samples, or 0")
    ledger = _ledger(spark, audit)
    topics = audit.topics or _topics_of(ledger)
    log = _log(spark, audit, topics)
    has_order = audit.with_order and ledger.where("sequence is not null").limit(1).count() > 0
    checked = _checked(ledger, log, is_elsewhere=bool(audit.topics))
    if has_order:
        checked = _with_order(checked)
    else:
        checked = checked.withColumn("reordered", f.lit(False))
    findings = [
        AuditFinding(**row.asDict(recursive=True)) for row in _summed(checked, audit.samples).collect()
    ]
    report = AuditReport.of(findings, topics=topics, samples_max=audit.samples, has_order=has_order)
    if not report.acknowledged:
        raise AuditError(f"the ledger {audit.ledger} has no acknowledged record: there is nothing to audit")
    return report


# The two sides


def _ledger(spark: SparkSession, audit: Audit) -> DataFrame:
    where = audit.ledger
    if where.startswith(TOPIC_PREFIX):
        values = _read(spark, audit, (where.removeprefix(TOPIC_PREFIX),))
        parsed = f"from_json(cast(value as string), '{LEDGER_SCHEMA}') as entry"
        return values.selectExpr(parsed).select("entry.*")
    if where.endswith(".parquet") or any(Path(where).glob("*.parquet")):
        return _completed(spark.read.parquet(where))
    return spark.read.schema(LEDGER_SCHEMA).json(where)


def _completed(rows: DataFrame) -> DataFrame:
    """Returns the ledger's columns in their types; columns that the Parquet files lack are null."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    schema: Any = StructType.fromDDL(LEDGER_SCHEMA)
    if "id" not in rows.columns:
        raise AuditError(f"the ledger has no column id: its columns are {', '.join(rows.columns)}")
    return rows.select(
        *(
            (f.col(each.name) if each.name in rows.columns else f.lit(None))
            .cast(each.dataType)
            .alias(each.name)
            for each in schema.fields
        )
    )


def _topics_of(ledger: DataFrame) -> tuple[str, ...]:
    topics = tuple(sorted(row.topic for row in ledger.select("topic").distinct().collect() if row.topic))
    if not topics:
        raise AuditError(
            "the ledger names no topic: name one with --topic, or check whether the ledger is empty"
        )
    return topics


def _log(spark: SparkSession, audit: Audit, topics: tuple[str, ...]) -> DataFrame:
    records = _read(spark, audit, topics)
    return records.selectExpr(
        f"cast({audit.record_id} as string) as id", "struct(topic, partition, offset) as place"
    )


def _read(spark: SparkSession, audit: Audit, topics: tuple[str, ...]) -> DataFrame:
    client = {"isolation.level": audit.isolation_level, **audit.client}
    client["bootstrap.servers"] = audit.bootstrap_servers
    return (
        spark.read.format("strandline")
        .options(**{f"kafka.{name}": value for name, value in client.items()})
        .option("subscribe", ",".join(topics))
        .option("includeHeaders", "headers" in audit.record_id)
        .load()
    )


# The ids


def _checked(ledger: DataFrame, log: DataFrame, *, is_elsewhere: bool) -> DataFrame:
    """Returns a row for each id: how often it was acknowledged and found, at which offsets, and what is wrong with it.
    An id is duplicated if the log has it more than once, or if the ledger has."""
    from pyspark.sql import functions as f

    nowhere = f.lit(None).cast("struct<topic: string, partition: int, offset: bigint>")
    told = ledger.select(
        "id",
        f.lit(1).alias("told"),
        f.lit(0).alias("seen"),
        f.struct("topic", "partition", "offset").alias("told_place"),
        nowhere.alias("place"),
        "key",
        "sequence",
    )
    seen = log.select(
        "id",
        f.lit(0).alias("told"),
        f.lit(1).alias("seen"),
        nowhere.alias("told_place"),
        "place",
        f.lit(None).cast("string").alias("key"),
        f.lit(None).cast("bigint").alias("sequence"),
    )
    merged = (
        told.unionAll(seen)
        .groupBy("id")
        .agg(
            f.sum("told").alias("told"),
            f.sum("seen").alias("seen"),
            f.min("told_place").alias("told_place"),
            f.min("place").alias("place"),
            f.max("key").alias("key"),
            f.max("sequence").alias("sequence"),
        )
    )
    is_named = f.col("id").isNotNull()
    is_moved = f.lit(False) if is_elsewhere else f.col("place") != f.col("told_place")
    return merged.select(
        "*",
        (is_named & (f.col("told") > 0) & (f.col("seen") == 0)).alias("lost"),
        (is_named & ((f.col("seen") > 1) | (f.col("told") > 1))).alias("duplicated"),
        (is_named & (f.col("told") == 1) & (f.col("seen") == 1) & is_moved).alias("misplaced"),
        (is_named & (f.col("told") == 0)).alias("unexpected"),
        (~is_named).alias("unnamed"),
    )


def _with_order(checked: DataFrame) -> DataFrame:
    """Marks records that stand in the log after a later record of their key."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    per_key = Window.partitionBy("place.topic", "place.partition", "key").orderBy("place.offset")
    before = f.max("sequence").over(per_key.rowsBetween(Window.unboundedPreceding, -1))
    is_there = f.col("place").isNotNull()
    return checked.withColumn("reordered", f.coalesce(is_there & (f.col("sequence") < before), f.lit(False)))


def _summed(checked: DataFrame, samples: int) -> DataFrame:
    """Returns counts by partition and by kind of mistake, each with samples. Only these rows reach the driver."""
    from pyspark.sql import functions as f

    place = f.coalesce("place", "told_place")
    is_wrong = f.lit(False)
    for name in _FLAGS:
        is_wrong = is_wrong | f.col(name)
    sample = f.struct("place.offset", "id", "told_place", "place", "key", "sequence", "told", "seen")
    group = f.pmod(f.hash("id"), f.lit(max(1, samples) * _GROUPS_PER_SAMPLE))
    keys: list[Column] = [
        place["topic"].alias("topic"),
        place["partition"].alias("partition"),
        *(f.col(name) for name in _FLAGS),
        f.when(is_wrong, group).alias("sample_group"),
    ]
    return checked.groupBy(*keys).agg(
        f.count("*").alias("ids"),
        f.sum("told").alias("told"),
        f.sum("seen").alias("seen"),
        f.min(f.when(is_wrong, sample)).alias("sample"),
    )
