"""A query that is to restart goes on after Spark gave a Python process too little time, and writes nothing twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from strandline.client.sync import Admin, Producer
from strandline.spark import exactly_once
from strandline.spark.sink.exactly_once import ExactlyOnceSink
from strandline.spark.sink.restarting import RestartingWriter
from tests.spark.topics import rows_of

RECORDS = 200
# The sentence of Spark, as a query's error has it.
LATE = "Python worker failed to connect back."


class Failing:
    """A sink that commits, and whose first calls fail after that: Spark repeats the batch."""

    def __init__(self, sink: ExactlyOnceSink, times: int, text: str) -> None:
        self.left = times
        self._sink = sink
        self._text = text

    def __call__(self, df: Any, batch: int) -> None:
        self._sink(df, batch)
        if self.left:
            self.left -= 1
            raise RuntimeError(self._text)


@pytest.fixture
def filled(bootstrap: str, topic: str, admin: Admin) -> str:
    for name in (topic, f"{topic}-out"):
        admin.create_topic(name, partitions=2)
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(RECORDS):
            producer.send(topic, b"%d" % number, b"%d" % number)
    return topic


def stream_of(spark: Any, bootstrap: str, topic: str, key: str = "key") -> Any:
    reader = spark.readStream.format("strandline").option("kafka.bootstrap.servers", bootstrap)
    stream = reader.option("subscribe", topic).option("startingOffsets", "earliest").load()
    return stream.selectExpr(f"{key} AS key", "value")


def start(writer: Any, checkpoint: Path) -> Any:
    return writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()


def test_a_late_python_process_does_not_end_a_query_that_restarts(
    spark: Any, bootstrap: str, filled: str, tmp_path: Path
) -> None:
    failing = Failing(ExactlyOnceSink(bootstrap, topic=f"{filled}-out"), 2, LATE)
    writer = stream_of(spark, bootstrap, filled).writeStream.foreachBatch(failing)
    query = start(RestartingWriter(writer, 3), tmp_path)
    assert query.awaitTermination(300)
    assert (query.restarts, failing.left, query.isActive) == (2, 0, False)
    found = Counter(int(row.value) for row in rows_of(bootstrap, f"{filled}-out", 2))
    assert found == Counter(range(RECORDS))


def test_it_is_given_up_after_so_many_restarts_and_other_errors_end_it_at_once(
    spark: Any, bootstrap: str, filled: str, tmp_path: Path
) -> None:
    rows = stream_of(spark, bootstrap, filled)
    for text, restarts in ((LATE, 1), ("something else", 0)):
        failing = Failing(ExactlyOnceSink(bootstrap, topic=f"{filled}-out"), 9, text)
        query = start(RestartingWriter(rows.writeStream.foreachBatch(failing), 1), tmp_path / text)
        with pytest.raises(Exception, match=text):
            query.awaitTermination(300)
        assert query.restarts == restarts
    with pytest.raises(ValueError, match="at least 1"):
        exactly_once(rows, bootstrap, topic=f"{filled}-out", restart=0)


def test_a_query_that_restarts_is_stopped_like_any_other(
    spark: Any, bootstrap: str, filled: str, tmp_path: Path
) -> None:
    rows = stream_of(spark, bootstrap, filled)
    writer = exactly_once(rows, bootstrap, topic=f"{filled}-out", restart=True).queryName("stopped")
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    assert (query.name, query.isActive) == ("stopped", True)
    query.stop()
    assert (query.restarts, query.isActive) == (0, False)


def test_progress_counts_each_record_once_though_the_batch_is_written_twice(
    spark: Any, bootstrap: str, filled: str, tmp_path: Path
) -> None:
    # Other keys lie in other partitions: the first attempt, without a shuffle, cannot succeed.
    rows = stream_of(spark, bootstrap, filled, key="reverse(value)")
    query = start(exactly_once(rows, bootstrap, topic=f"{filled}-out"), tmp_path)
    assert query.awaitTermination(300)
    assert sum(batch["numInputRows"] for batch in query.recentProgress) == RECORDS
    found = Counter(int(row.value) for row in rows_of(bootstrap, f"{filled}-out", 2))
    assert found == Counter(range(RECORDS))
