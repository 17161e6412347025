"""Decides the partitions of rows before they are shuffled: each output partition must be written by one task alone.

Rows with a key go where Java's producer puts them, rows without one to all partitions in turn. Spark computes that by
itself: the hash is in a library that every Spark has, so that no row goes through Python for it. That needs the number
of partitions beforehand. A topic whose number is not known, because rows name their topics and none went there yet, is
written by one task, which decides their partitions; so is every topic where a Spark has no such hash.
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

# The column that this adds; a DataFrame may have one of the usual name.
PARTITION_COLUMN: Final = "strandline_partition"
# How many rows without a key go to one partition in a row: about a batch of small records.
_STICKY_ROWS: Final = 1024
# monotonically_increasing_id has the row in its lower bits, and the task above them.
_ROW_BITS: Final = 33
_POSITIVE: Final = 0x7FFFFFFF
# With its default seed it computes the 32 bits that Java's producer computes.
_HASH: Final = ("org.apache.commons.codec.digest.MurmurHash2", "hash32")
_NOW: Final = ("java.lang.System", "currentTimeMillis")
# An eighth of a second: batches take longer, and within one rows stay together.
_NOW_BITS: Final = 7
# One expression does not distinguish more topics than this.
_TOPICS_MAX: Final = 100


def partition_counts(admin: Admin, topic: str | None, known_topics: Iterable[str]) -> dict[str, int]:
    """Returns how many partitions there are now, of the one topic or of those that had rows before. Each batch calls
    it, so that partitions that are added get rows."""
    names = sorted(known_topics)[:_TOPICS_MAX] if topic is None else [topic]
    if not names:
        return {}
    try:
        topics = admin.describe_topics(names)
    except KafkaError as error:
        if topic is not None or error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        # Some were deleted.
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
    # A hash keeps partitions together too, and may give one task more of them: all that PySpark 4.0 has.
    if topic is None or not hasattr(rows, "repartitionById"):
        return rows.repartition(tasks, *partitioning.repartition_by)
    return rows.repartitionById(tasks, *partitioning.repartition_by)


class _Partitioning(NamedTuple):
    """Expressions that serve the next DataFrame too: each part of one is some calls into Spark's JVM, and there are
    many."""

    columns: tuple[Column, ...]
    repartition_by: tuple[Column, ...]  # rows that have these in common go to one task


@cache
def _partitioning_in_one(jvm: Any, partitions: int | None, names: frozenset[str]) -> _Partitioning:
    """Returns the expressions where all rows go to one topic, whichever it is."""
    from pyspark.sql import functions as f

    count = None if partitions is None else f.lit(partitions)
    return _Partitioning(
        _record_columns(jvm, count, names), () if count is None else (f.col(PARTITION_COLUMN),)
    )


@cache
def _partitioning_by_topic(
    jvm: Any, counts: tuple[tuple[str, int], ...], names: frozenset[str]
) -> _Partitioning:
    """Returns the expressions where each row names its topic."""
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
    """Returns the number of partitions of a row's topic, null where it is not known; None if no topic's is."""
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
    """Returns the partition of rows without a key. Each task begins somewhere else, and each batch.

    The expression reads the clock while rows are partitioned. Spark's own current_timestamp is a number in the code
    that Spark generates for the expression, another one in each batch, so that Spark would compile the code of each
    batch again and run it cold.
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
        _log.warning("this Spark cannot place rows by itself, so that one task writes each topic: %s", error)
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
