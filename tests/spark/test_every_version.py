"""The table of docs/guides/spark-reference.md: features of every PySpark from 4.0 on, and those that need 4.2.

`test_other_versions` runs this with each of them. In `make test` more of it is tested with one of them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from strandline.client.sync import Admin, Producer
from strandline.pipeline.runtime.runner import Runner
from strandline.pipeline.runtime.validation import validate
from strandline.pipeline.spec.reader import load
from strandline.pipeline.spec.yaml_lines import SpecError
from strandline.spark import exactly_once, write_atomically
from strandline.spark.micro_batches import HAS_ADMISSION_CONTROL
from tests.spark.topics import rows_of

pytestmark = pytest.mark.skipif(
    os.environ.get("STRANDLINE_SOAK") != "1", reason="for other versions: set STRANDLINE_SOAK=1"
)
RECORDS = 300
PARTITIONS = 3
QUERY_SECONDS_MAX = 300
SPEC = """
pipeline: versions
brokers: {brokers}
checkpoint: checkpoint
commit-group: {topic}-group
sources:
  orders:
    topic: {topic}
    decode:
      format: json
      schema: {{id: bigint not null, at: timestamp}}
    rules:
      - {{name: small, check: id < 290}}
    watermark: {{column: at, delay: 1 hour}}
  names:
    topic: {topic}-names
    as: table
    decode:
      format: json
      schema: {{id: bigint not null, name: string}}
transforms:
  - name: named
    sql: SELECT o.id, n.name FROM orders o LEFT JOIN names n ON o.id = n.id
  - name: counted
    sql: SELECT window.start AS hour, count(*) AS orders FROM orders GROUP BY window(at, '1 hour')
sinks:
  - {{from: named, topic: "{topic}-out", key: id, partitions: 2}}
  - {{from: counted, topic: "{topic}-hours", partitions: 1}}
  - {{from: named, parquet: parquet}}
mode: update
"""


@pytest.fixture
def filled(bootstrap: str, topic: str, admin: Admin) -> str:
    admin.create_topic(topic, partitions=PARTITIONS)
    put(bootstrap, topic, range(RECORDS))
    return topic


@pytest.fixture
def stream(spark: Any, bootstrap: str) -> Callable[..., Any]:
    def opened(topic: str, **options: str) -> Any:
        reader = spark.readStream.format("strandline").option("kafka.bootstrap.servers", bootstrap)
        reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
        return reader.options(**options).load().select("key", "value")

    return opened


def put(bootstrap: str, topic: str, numbers: range, value: str = "{}") -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in numbers:
            producer.send(topic, value.replace("{}", str(number)).encode(), b"%d" % number)


def numbers_in(bootstrap: str, topic: str, partitions: int = PARTITIONS) -> Counter[int]:
    return Counter(int(row.value) for row in rows_of(bootstrap, topic, partitions))


def run(writer: Any, checkpoint: Path) -> list[int]:
    """To its end; how many records each batch had."""
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    assert query.awaitTermination(QUERY_SECONDS_MAX), "the query did not end"
    return [batch["numInputRows"] for batch in query.recentProgress if batch["numInputRows"]]


def test_batches_are_read_and_written(spark: Any, bootstrap: str, filled: str, admin: Admin) -> None:
    target = f"{filled}-copy"
    admin.create_topic(target, partitions=PARTITIONS)
    source = spark.read.format("strandline").option("kafka.bootstrap.servers", bootstrap)
    rows = source.option("subscribe", filled).option("includeHeaders", "true").load()
    writer = rows.select("key", "value").write.format("strandline").mode("append")
    writer.option("kafka.bootstrap.servers", bootstrap).option("topic", target).save()
    assert numbers_in(bootstrap, target) == Counter(range(RECORDS))
    assert write_atomically(rows.select("key", "value"), bootstrap, name=target, topic=target) == RECORDS
    assert numbers_in(bootstrap, target) == Counter([*range(RECORDS)] * 2)


def test_streams_are_read_and_written_at_least_once(
    bootstrap: str, filled: str, admin: Admin, stream: Callable[..., Any], tmp_path: Path
) -> None:
    target = f"{filled}-copy"
    admin.create_topic(target, partitions=PARTITIONS)
    for _ in range(2):  # with nothing new the second time
        writer = stream(filled, commitGroup=f"{filled}-group").writeStream.format("strandline")
        writer = writer.option("kafka.bootstrap.servers", bootstrap).option("topic", target)
        run(writer, tmp_path / "checkpoint")
        assert numbers_in(bootstrap, target) == Counter(range(RECORDS))


def test_streams_are_written_exactly_once_and_go_on_where_they_ended(
    bootstrap: str, filled: str, admin: Admin, stream: Callable[..., Any], tmp_path: Path
) -> None:
    target = f"{filled}-copy"
    admin.create_topic(target, partitions=PARTITIONS + 1)  # not where they were read: with a shuffle
    # What a driver leaves that dies between the sink's commit and Spark's.
    for number in range(2):
        put(bootstrap, filled, range(RECORDS, RECORDS + 50 * number))
        run(exactly_once(stream(filled), bootstrap, topic=target), tmp_path / "checkpoint")
        for path in (tmp_path / "checkpoint" / "commits").glob(f"*{number}*"):
            path.unlink()
    run(exactly_once(stream(filled), bootstrap, topic=target), tmp_path / "checkpoint")
    assert numbers_in(bootstrap, target, PARTITIONS + 1) == Counter(range(RECORDS + 50))


def test_a_run_with_available_now_ends_where_topics_ended_and_has_batches_where_spark_has_limits(
    bootstrap: str, filled: str, admin: Admin, stream: Callable[..., Any], tmp_path: Path
) -> None:
    target = f"{filled}-copy"
    admin.create_topic(target, partitions=PARTITIONS)
    limit = {"maxOffsetsPerTrigger": "120"} if HAS_ADMISSION_CONTROL else {}
    sink = exactly_once(stream(filled, **limit), bootstrap, topic=target)
    batches = run(sink, tmp_path / "checkpoint")
    assert sum(batches) == RECORDS
    assert len(batches) == (3 if HAS_ADMISSION_CONTROL else 1)


def test_a_topic_that_was_made_again_is_data_loss_which_may_be_allowed(
    bootstrap: str, filled: str, admin: Admin, stream: Callable[..., Any], tmp_path: Path
) -> None:
    target = f"{filled}-copy"
    admin.create_topic(target, partitions=PARTITIONS)

    def copy(**options: str) -> list[int]:
        return run(exactly_once(stream(filled, **options), bootstrap, topic=target), tmp_path / "checkpoint")

    copy()
    admin.delete_topics([filled])
    admin.create_topic(filled, partitions=PARTITIONS)
    put(bootstrap, filled, range(RECORDS, RECORDS + 10))
    with pytest.raises(Exception, match="failOnDataLoss"):
        copy()
    copy(failOnDataLoss="false")
    put(bootstrap, filled, range(RECORDS + 10, RECORDS + 20))
    copy(failOnDataLoss="false")
    found = numbers_in(bootstrap, target)
    assert found.total() == len(found)
    assert {*range(RECORDS), *range(RECORDS + 10, RECORDS + 20)} <= set(found)


@pytest.mark.skipif(HAS_ADMISSION_CONTROL, reason="this PySpark has limits")
@pytest.mark.parametrize("option", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger"])
def test_limits_of_batches_are_refused_where_spark_has_none(
    stream: Callable[..., Any], filled: str, tmp_path: Path, option: str
) -> None:
    writer = stream(filled, **{option: "10"}).writeStream.format("noop")
    with pytest.raises(Exception, match=r"need PySpark 4\.2 or newer"):
        run(writer, tmp_path / "checkpoint")


def test_a_pipeline_runs_with_a_table_windows_rules_and_several_sinks(
    spark: Any, bootstrap: str, topic: str, admin: Admin, tmp_path: Path
) -> None:
    for name in (topic, f"{topic}-names"):
        admin.create_topic(name, partitions=2)
    put(bootstrap, topic, range(RECORDS), '{"id": {}, "at": "2026-01-01T00:00:00Z"}')
    put(bootstrap, f"{topic}-names", range(10), '{"id": {}, "name": "name-{}"}')
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.format(brokers=bootstrap, topic=topic))
    validate(load(path), spark=spark)
    assert Runner(load(path), spark=spark).run()["event"] == "finished"
    assert len(rows_of(bootstrap, f"{topic}-out", 2)) == 290
    assert len(rows_of(bootstrap, f"{topic}.dlq", 2)) == 10
    assert b'"orders":290' in rows_of(bootstrap, f"{topic}-hours", 1)[-1].value
    found = spark.read.parquet(str(tmp_path / "parquet"))
    assert (found.count(), found.where("name = 'name-3'").count()) == (290, 1)


@pytest.mark.skipif(HAS_ADMISSION_CONTROL, reason="this PySpark has limits")
def test_a_limit_in_a_pipeline_is_refused_with_its_line_before_anything_runs(
    spark: Any, bootstrap: str, filled: str, tmp_path: Path
) -> None:
    path = tmp_path / "spec.yaml"
    text = SPEC.format(brokers=bootstrap, topic=filled)
    path.write_text(text.replace("    decode:", "    max-records-per-batch: 10\n    decode:", 1))
    line = 1 + text.splitlines().index("  orders:")
    with pytest.raises(SpecError, match=rf":{line}: .*max-records-per-batch needs PySpark 4\.2"):
        validate(load(path), with_brokers=False, spark=spark)
