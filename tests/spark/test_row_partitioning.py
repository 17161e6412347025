"""Where the exactly-once sink puts rows: by key as Java's producer, otherwise everywhere, also in partitions that are
added; and each partition in one task, whether Spark knows the topic's partitions beforehand or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from strandline.client.producer.partitioners import partition_for_key
from strandline.client.sync import Admin
from strandline.spark import write_atomically
from strandline.spark.sink import row_partitioning
from strandline.spark.sink.batch_transaction import BatchTransaction
from tests.spark.topics import rows_of

Write = Callable[..., dict[str, int]]

# Keys of every length from 0 to 7, those of random bytes too: the last bytes of a key are hashed in another way.
KEYS = """
    select if(id % 2 = 0, unhex(substr(md5(string(id)), 1, 2 * int(id % 8))), cast(repeat('k', int(id % 8)) as binary))
           as key, cast(id as string) as value
    from range(400)
"""


@pytest.fixture
def write(bootstrap: str, topic: str) -> Write:
    """Writes in a transaction as the sink does, and commits."""

    def written(df: Any, to: str | None, seen: tuple[str, ...] = ()) -> dict[str, int]:
        transaction = BatchTransaction({"bootstrap.servers": bootstrap}, topic, 60_000)
        transaction.begin()
        try:
            found = transaction.write(df, to, seen)
            transaction.commit()
        finally:
            transaction.close()
        return found

    return written


def test_keys_of_any_bytes_go_where_the_client_puts_them(
    spark: Any, bootstrap: str, topic: str, admin: Admin, write: Write
) -> None:
    admin.create_topic(topic, partitions=7)
    assert write(spark.sql(KEYS), topic) == {topic: 400}
    rows = rows_of(bootstrap, topic, 7)
    assert sorted(int(row.value) for row in rows) == list(range(400))
    assert all(row.partition == partition_for_key(row.key, 7) for row in rows)


def test_a_pyspark_that_cannot_say_which_task_gets_a_row_places_them_alike(
    spark: Any, bootstrap: str, topic: str, admin: Admin, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("pyspark.sql.classic.dataframe.DataFrame.repartitionById", raising=False)
    monkeypatch.delattr("pyspark.sql.DataFrame.repartitionById", raising=False)
    admin.create_topic(topic, partitions=7)
    assert write(spark.sql(KEYS), topic) == {topic: 400}
    rows = rows_of(bootstrap, topic, 7)
    assert sorted(int(row.value) for row in rows) == list(range(400))
    assert all(row.partition == partition_for_key(row.key, 7) for row in rows)


def test_partitions_that_are_added_between_two_batches_get_rows(
    spark: Any, bootstrap: str, topic: str, admin: Admin, write: Write
) -> None:
    admin.create_topic(topic, partitions=2)
    write(spark.sql(KEYS), topic)
    admin.create_partitions({topic: 5})
    write(spark.sql(KEYS).selectExpr("key", "cast(1000 + int(value) as string) as value"), topic)
    rows = [row for row in rows_of(bootstrap, topic, 5) if int(row.value) >= 1000]
    assert {row.partition for row in rows} == set(range(5))
    assert all(row.partition == partition_for_key(row.key, 5) for row in rows)


def test_rows_without_a_key_are_spread_over_partitions(
    spark: Any, bootstrap: str, topic: str, admin: Admin, write: Write
) -> None:
    admin.create_topic(topic, partitions=3)
    write(spark.range(8000).selectExpr("cast(id as string) as value"), topic)
    rows = rows_of(bootstrap, topic, 3)
    assert len(rows) == 8000
    assert {row.partition for row in rows} == {0, 1, 2}


def test_no_batch_but_the_first_has_code_compiled(
    spark: Any, bootstrap: str, topic: str, admin: Admin, write: Write
) -> None:
    admin.create_topic(topic, partitions=3)
    rows = spark.range(100).selectExpr("cast(id as string) as value")
    compiled = (
        spark.sparkContext._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    )
    counts = []
    for _ in range(3):
        write(rows, topic)
        counts.append(compiled.getCount())
    assert counts[1] == counts[2]


def test_a_topic_that_was_seen_before_is_written_by_several_tasks_and_a_new_one_by_one(
    spark: Any, bootstrap: str, topic: str, admin: Admin, write: Write
) -> None:
    names = [f"{topic}-{number}" for number in range(2)]
    for name in names:
        admin.create_topic(name, partitions=4)
    keys = "concat('schlüssel-', hex(key)) as key"
    df = spark.sql(KEYS).selectExpr(keys, "value", f"concat('{topic}-', int(value) % 2) as topic")
    assert write(df, None, (names[0],)) == {names[0]: 200, names[1]: 200}
    for number, name in enumerate(names):
        rows = rows_of(bootstrap, name, 4)
        assert sorted(int(row.value) for row in rows) == list(range(number, 400, 2))
        assert all(row.partition == partition_for_key(row.key, 4) for row in rows)


def test_a_spark_without_the_hash_writes_the_same_rows_to_the_same_places(
    spark: Any, bootstrap: str, topic: str, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.create_topic(topic, partitions=7)
    monkeypatch.setattr(row_partitioning, "_HASH", ("org.apache.no.such.Hash", "hash32"))
    row_partitioning.has_murmur2.cache_clear()
    try:
        assert write_atomically(spark.sql(KEYS), bootstrap, name=topic, topic=topic) == 400
    finally:
        row_partitioning.has_murmur2.cache_clear()
    rows = rows_of(bootstrap, topic, 7)
    assert sorted(int(row.value) for row in rows) == list(range(400))
    assert all(row.partition == partition_for_key(row.key, 7) for row in rows)
