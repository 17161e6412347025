"""Rows into topics: columns, options, and where rows go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from strandline.client.errors import RecordTooLargeError
from strandline.client.producer.partitioners import partition_for_key
from strandline.client.sync import Admin
from strandline.spark.columns import WRITE_COLUMNS
from strandline.spark.options import OptionError, WriteOptions
from strandline.spark.sink.at_least_once import rows_to_tables, write_rows
from strandline.spark.source import StrandlineSource
from tests.oracle.fetch import SPARK_KAFKA_JARS
from tests.oracle.require import require
from tests.spark.topics import rows_of

ROWS = """
    select if(id % 4 = 0, null, concat('key-', id % 9)) as key,
           cast(concat('value-', id) as binary) as value,
           if(id % 3 = 0, array(named_struct('key', 'n', 'value', cast(string(id) as binary))), null) as headers,
           if(id % 5 = 0, cast(id % 3 as int), null) as partition
    from range(60)
"""


@pytest.mark.oracle
def test_both_formats_put_the_same_rows_in_the_same_places(
    spark: Any, bootstrap: str, topic: str, admin: Admin
) -> None:
    require(SPARK_KAFKA_JARS)
    df = spark.sql(ROWS)
    found = {}
    for source in ("kafka", "strandline"):
        name = f"{topic}-{source}"
        admin.create_topic(name, partitions=3)
        writer = df.write.format(source).option("kafka.bootstrap.servers", bootstrap).option("topic", name)
        writer.mode("append").save()
        found[source] = sorted(
            # A row that says neither where it goes nor by which key may be anywhere.
            (r.value, r.key, r.headers, r.partition if r.key or int(r.value[6:]) % 5 == 0 else -1)
            for r in rows_of(bootstrap, name, 3)
        )
    assert len(found["strandline"]) == 60
    assert found["strandline"] == found["kafka"]


def test_a_stream_goes_to_the_topics_that_its_rows_name(
    spark: Any, bootstrap: str, topic: str, admin: Admin, tmp_path: Path
) -> None:
    names = [f"{topic}-{number}" for number in range(3)]
    for name in names:
        admin.create_topic(name, partitions=2)
    rows = spark.range(90).selectExpr(
        f"concat('{topic}-', id % 3) as topic", "cast(id as string) as key", "cast(id as string) as value"
    )
    rows.write.parquet(str(tmp_path / "in"))
    query = (
        spark.readStream.schema(rows.schema)
        .parquet(str(tmp_path / "in"))
        .writeStream.format("strandline")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(90), "the query did not end"
    for number, name in enumerate(names):
        written = rows_of(bootstrap, name, 2)
        assert sorted(int(row.value) for row in written) == list(range(number, 90, 3))
        assert all(row.partition == partition_for_key(row.key, 2) for row in written)


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ("key string", {"topic": "x"}, "no column value"),
        ("value string", {}, "option topic"),
        ("value int", {"topic": "x"}, "column value must be a string or binary"),
        ("value string, partition string", {"topic": "x"}, "column partition must be an int"),
        ("value string, headers array<string>", {"topic": "x"}, "column headers must be"),
        ("value string, topic int", {}, "column topic must be a string"),
        ("value string", {"topic": "x", "kafka.value.serializer": "json"}, "cast"),
    ],
)
def test_rows_that_cannot_be_written_are_refused(
    spark: Any, columns: str, options: dict[str, str], words: str
) -> None:
    from pyspark.sql.types import StructType

    source = StrandlineSource({"kafka.bootstrap.servers": "127.0.0.1:1", **options})
    with pytest.raises(OptionError, match=words):
        source.writer(StructType.fromDDL(columns), overwrite=False)


def test_a_topic_is_not_overwritten(spark: Any) -> None:
    from pyspark.sql.types import StructType

    source = StrandlineSource({"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "x"})
    with pytest.raises(OptionError, match="mode append"):
        source.writer(StructType.fromDDL("value string"), overwrite=True)


def test_the_whole_result_of_a_stream_is_appended_each_time(
    spark: Any, bootstrap: str, topic: str, admin: Admin, tmp_path: Path
) -> None:
    """The output mode complete, which Spark's format takes, too; the option topic counts, whatever the column is."""
    admin.create_topic(topic, partitions=1)
    rows = spark.range(4).selectExpr("id % 2 as topic", "id")
    for at in range(2):
        rows.coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
        query = (
            spark.readStream.schema(rows.schema)
            .parquet(str(tmp_path / "in"))
            .groupBy("topic")
            .count()
            .selectExpr("topic", "cast(topic as string) as key", "cast(count as string) as value")
            .writeStream.format("strandline")
            .options(**{"kafka.bootstrap.servers": bootstrap, "topic": topic})
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .outputMode("complete")
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(90), f"run {at} did not end"
    found = sorted((row.key, row.value) for row in rows_of(bootstrap, topic, 1))
    assert found == [(b"0", b"2"), (b"0", b"4"), (b"1", b"2"), (b"1", b"4")]


# What needs no Spark


@pytest.mark.parametrize("headers", [[{"key": None, "value": b"content"}], [None]])
def test_a_header_without_a_name_is_refused(
    bootstrap: str, topic: str, admin: Admin, headers: list[Any]
) -> None:
    admin.create_topic(topic, partitions=1)
    rows = pa.record_batch(
        {"value": pa.array([b"v"]), "headers": pa.array([headers], WRITE_COLUMNS["headers"])}
    )
    options = WriteOptions(topic=topic, producer={"bootstrap.servers": bootstrap})
    with pytest.raises(ValueError, match="null as its name"):
        write_rows(iter([rows]), options)


def test_columns_that_a_user_has_in_mind_are_refused() -> None:
    from pyspark.sql.types import StringType, StructType

    source = StrandlineSource({"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "x"})
    for made in (source.reader, source.streamReader):
        with pytest.raises(OptionError, match=r"leave \.schema"):
            made(StructType().add("value", StringType()))


def test_a_task_fails_if_the_broker_refuses_one_of_its_rows(bootstrap: str, topic: str, admin: Admin) -> None:
    admin.create_topic(topic, configs={"max.message.bytes": "10000"})
    rows = pa.record_batch({"value": [b"small", bytes(20_000), b"small"]})
    options = WriteOptions(topic=topic, producer={"bootstrap.servers": bootstrap})
    with pytest.raises(RecordTooLargeError):
        write_rows(iter([rows]), options)


def test_rows_as_pyspark_4_0_gives_them_become_the_same_table() -> None:
    headers = [("name", bytearray(b"content")), ("empty", None)]
    rows = [("later", "k", bytearray(b"v"), headers, 3), ("later", None, None, None, None)] * 6_000
    tables = list(rows_to_tables(iter(rows), ("other", "key", "value", "headers", "partition")))
    assert [table.num_rows for table in tables] == [10_000, 2_000]
    first, second = tables[0].slice(0, 2).to_pylist()
    assert first == {
        "key": b"k",
        "value": b"v",
        "headers": [{"key": "name", "value": b"content"}, {"key": "empty", "value": None}],
        "partition": 3,
    }
    assert set(second.values()) == {None}
