"""Decides the partitions of rows before they are shuffled: each output partition must be written by one task alone.

Rows with a key go where Java's producer puts them, rows without one to all partitions in turn. Spark computes this
itself: the hash is in a library that every Spark installation has, so that no row goes through Python for it. The
number of partitions must be known beforehand. If rows name their topics, a topic that had no rows yet is written by one
task, which decides the partitions. The same holds for every topic if the Spark version has no such hash.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from strandline.client.admin.calls import PartialFailureError
from strandline.client.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from strandline.client.sync import Admin

_log = logging.getLogger(__name__)

# The name of the added column; a DataFrame may already have a column with a usual name.
PARTITION_COLUMN: Final = "strandline_partition"
# The number of consecutive rows without a key that go to one partition: about a batch of small records.
_STICKY_ROWS: Final = 1024
# monotonically_increasing_id has the row in its lower bits, and the task above them.
_ROW_BITS: Final = 33
_POSITIVE: Final = 0x7FFFFFFF
# With its default seed it computes the 32 bits that Java's producer computes.
_HASH: Final = ("org.apache.commons.codec.digest.MurmurHash2", "hash32")
_NOW: Final = ("java.lang.System", "currentTimeMillis")
# An eighth of a second: batches take longer than that, and rows of the same moment stay together.
_NOW_BITS: Final = 7
# One expression does not distinguish more topics than this.
_TOPICS_MAX: Final = 100


def partition_counts(admin: Admin, topic: str | None, known_topics: Iterable[str]) -> dict[str, int]:
    """Returns the present number of partitions of the one topic, or of the topics that had rows before. Each batch
    calls this, so that added partitions get rows."""
    names = sorted(known_topics)[:_TOPICS_MAX] if topic is None else [topic]
    if not names:
        return {}
    try:
        topics = admin.describe_topics(names)
    except KafkaError as error:
        if topic is not None or error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        # Some topics were deleted.
        topics = error.results if isinstance(error, PartialFailureError) else {}
    return {name: len(each.partitions) for name, each in topics.items()}


def partition_rows(df: DataFrame, topic: str | None, counts: Mapping[str, int]) -> DataFrame:
    """Returns the columns that are written and the partitions of the rows, shuffled so that each partition is in one
    task."""
    context = df.sparkSession.sparkContext
    names = frozenset(df.columns)
    if topic is None:
        partitioning = _partitioning_by_topic(context._jvm, tuple(sorted(counts.items())), names)
    else:
        partitioning = _partitioning_in_one(context._jvm, counts.get(topic), names)
    rows = df.select(*partitioning.columns)
    tasks = context.defaultParallelism
    if not partitioning.repartition_by:
        return rows.repartition(1)
    # PySpark 4.0 can only shuffle by hash. That keeps partitions together too, but may give one task more of them.
    if topic is None or not hasattr(rows, "repartitionById"):
        return rows.repartition(tasks, *partitioning.repartition_by)
    return rows.repartitionById(tasks, *partitioning.repartition_by)


class _Partitioning(NamedTuple):
    """Expressions that are used for the next DataFrames too: building each part takes some calls into Spark's JVM, and
    there are many parts."""

    columns: tuple[Column, ...]
    repartition_by: tuple[Column, ...]  # rows that are equal in these columns go to one task


@cache
def _partitioning_in_one(jvm: Any, partitions: int | None, names: frozenset[str]) -> _Partitioning:
    """Returns the expressions for rows that all go to one topic."""
    from pyspark.sql import functions as f

    count = None if partitions is None else f.lit(partitions)
    return _Partitioning(
        _record_columns(jvm, count, names), () if count is None else (f.col(PARTITION_COLUMN),)
    )


@cache
def _partitioning_by_topic(
    jvm: Any, counts: tuple[tuple[str, int], ...], names: frozenset[str]
) -> _Partitioning:
    """Returns the expressions for rows that each name a topic."""
    from pyspark.sql import functions as f

    count = _count(counts)
    known = () if count is None else (f.when(count.isNotNull(), f.col(PARTITION_COLUMN)),)
    return _Partitioning((*_record_columns(jvm, count, names), f.col("topic")), (f.col("topic"), *known))


def _record_columns(jvm: Any, count: Column | None, names: frozenset[str]) -> tuple[Column, ...]:
    """Returns the columns of records, and the column of their partitions."""
    from pyspark.sql import functions as f

    def column(name: str, kind: str) -> Column:
        return f.col(name) if name in names else f.lit(None).cast(kind)

    key, partition = column("key", "binary").cast("binary"), column("partition", "int")
    if count is not None:
        partition = f.coalesce(partition, _by_key(jvm, key, count), _round_robin(jvm, count))
    columns = [f.col("value").cast("binary").alias("value"), partition.alias(PARTITION_COLUMN)]
    columns += [key.alias("key")] if "key" in names else []
    columns += [f.col("headers")] if "headers" in names else []
    return tuple(columns)


def _count(counts: tuple[tuple[str, int], ...]) -> Column | None:
    """Returns the number of partitions of a row's topic; null if it is not known, and None if it is known for no
    topic."""
    from pyspark.sql import functions as f

    cases: Any = None
    for name, count in counts:
        chain: Any = f if cases is None else cases
        cases = chain.when(f.col("topic") == name, count)
    return cases  # type: ignore[no-any-return]


def _by_key(jvm: Any, key: Column, count: Column) -> Column:
    """Returns the partition by key; null for rows without one."""
    from pyspark.sql import functions as f

    return f.pmod(murmur2(jvm, key).bitwiseAND(_POSITIVE), count)


def _round_robin(jvm: Any, count: Column) -> Column:
    """Returns the partition of rows without a key. Each task and each batch begins at another partition.

    The expression reads the clock while rows are partitioned. Spark's own current_timestamp would be a constant in the
    generated code, with another value in each batch, so that Spark would compile the code of each batch again and run
    it cold.
    """
    from pyspark.sql import functions as f

    row = f.monotonically_increasing_id().bitwiseAND((1 << _ROW_BITS) - 1)
    now = f.shiftright(_java_call(jvm, _NOW, "long", [], is_deterministic=False), _NOW_BITS)
    return f.pmod(now + f.spark_partition_id() + f.floor(row / _STICKY_ROWS), count).cast("int")


@cache
def has_murmur2(jvm: Any) -> bool:
    """True if this Spark can compute the hash: it is called through parts of Spark that may look different in another
    version."""
    from pyspark.sql import functions as f

    try:
        murmur2(jvm, f.lit(b""))
    except Exception as error:
        _log.warning(
            "this version of Spark cannot partition rows by itself, so that one task writes each topic: %s",
            error,
        )
        return False
    return True


def murmur2(jvm: Any, key: Column) -> Column:
    """Returns the hash of a binary column, as an expression of Spark's own that calls a Java function."""
    from pyspark.sql import functions as f

    return _java_call(jvm, _HASH, "integer", [key, f.length(key)], is_deterministic=True)


def _java_call(
    jvm: Any, function: tuple[str, str], returns: str, arguments: list[Column], *, is_deterministic: bool
) -> Column:
    """Returns the call of a static function of Java, by its class and name; null where an argument is."""
    from pyspark.sql.classic.column import Column as ClassicColumn
    from pyspark.sql.classic.column import _to_java_column

    spark = _internals(jvm)
    expressions = [spark.convert.expression(_to_java_column(each)) for each in arguments]
    library, name = function
    # Types of arguments stay as they are; null for null; whether the result may change from call to call; no function
    # of a catalogue.
    call = spark.static_invoke(
        spark.find(library),
        spark.data_type.fromJson(f'"{returns}"'),
        name,
        spark.utils.toSeq(expressions),
        spark.utils.toSeq([]),
        True,
        True,
        is_deterministic,
        spark.option.empty(),
    )
    return ClassicColumn(spark.convert.column(call))


class _Internals(NamedTuple):
    """Classes of Spark's JVM; finding one by its name takes a call for each part of that."""

    find: Any
    convert: Any
    static_invoke: Any
    data_type: Any
    utils: Any
    option: Any


@cache
def _internals(jvm: Any) -> _Internals:
    find = jvm.java.lang.Class.forName
    return _Internals(
        find,
        find("org.apache.spark.sql.classic.ExpressionUtils$").getField("MODULE$").get(None),
        jvm.org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke,
        jvm.org.apache.spark.sql.types.DataType,
        jvm.PythonUtils,
        jvm.scala.Option,
    )
