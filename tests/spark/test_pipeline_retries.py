"""Records that a rule refuses for now are tried again when they are due, and die after the last attempt."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from strandline.client.admin.configs import ConfigResource
from strandline.client.sync import Admin, Producer
from strandline.pipeline.plan.retries import RetryReader
from strandline.pipeline.runtime.runner import Runner
from strandline.pipeline.runtime.validation import validate
from strandline.pipeline.spec.dead_letter_topics import retry_topics
from strandline.pipeline.spec.reader import load
from strandline.spark.options import read_options
from tests.spark.topics import rows_of

SPEC = """
pipeline: again
brokers: {brokers}
checkpoint: checkpoint
retry: {{backoff: [1 milliseconds, 1 milliseconds]}}
sources:
  orders:
    topic: {topic}
    decode: {{format: json, schema: {{id: bigint not null}}}}
    rules:
      - {{name: positive, check: id >= 0}}
      # Order 2 passes when it comes again, order 3 never.
      - {{name: known, check: "id = 1 OR (id = 2 AND exists(_headers, h -> h.key = 'dlq.attempt'))", retry: true}}
sinks:
  - {{from: orders, topic: {topic}-out, partitions: 1}}
"""
HOUR_MS = 3_600_000


def test_refused_records_come_back_until_they_pass_or_die(
    spark: Any, bootstrap: str, topic: str, admin: Admin, tmp_path: Path
) -> None:
    admin.create_topic(topic, partitions=2)
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.format(brokers=bootstrap, topic=topic))
    spec = load(path)
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in (1, 2, 3, -1):
            # What others have said about attempts is not about this pipeline's.
            headers = [("dlq.attempt", b"9"), ("trace", b"t")]
            producer.send(topic, b'{"id": %d}' % number, b"k%d" % number, headers=headers)

    def run() -> tuple[dict[str, Any], list[int]]:
        """Runs the pipeline, and returns its counts and the output so far."""
        counted = Runner(spec, spark=spark).run()["queries"]["topics"]
        return counted, sorted(json.loads(row.value)["id"] for row in rows_of(bootstrap, f"{topic}-out", 1))

    def retried(number: int) -> list[Any]:
        return rows_of(bootstrap, f"{topic}.again.retry.{number}", 2)

    counted, out = run()
    assert counted["retried"] == {f"{topic}.again.retry.1": 2}
    assert counted["dead_letters"] == {f"{topic}.dlq": 1}
    assert out == [1]
    resource = ConfigResource.topic(f"{topic}.again.retry.1")
    configs = admin.describe_configs([resource])[resource]
    assert configs["retention.ms"].value == str(7 * 24 * HOUR_MS + 1), "a week behind the delay"
    waiting = retried(1)
    assert sorted(json.loads(row.value)["id"] for row in waiting) == [2, 3]
    found = dict(waiting[0].headers)
    assert (found["dlq.attempt"], found["trace"]) == (b"1", b"t")
    assert found["dlq.original_topic"] == topic.encode()
    assert int(found["dlq.retry_at"]) <= waiting[0].timestamp + 1

    counted, out = run()
    assert counted["records"]["orders again"] == 2
    assert (out, len(retried(2))) == ([1, 2], 1)

    counted, out = run()
    assert (out, len(retried(1)), len(retried(2))) == ([1, 2], 2, 1)
    letters = {
        json.loads(row.value)["id"]: dict(row.headers) for row in rows_of(bootstrap, f"{topic}.dlq", 2)
    }
    assert letters.keys() == {-1, 3}
    assert (letters[-1]["dlq.attempt"], letters[3]["dlq.attempt"]) == (b"1", b"3")
    assert "dlq.retry_at" not in letters[3]
    (place,) = [row for row in rows_of(bootstrap, topic, 2) if json.loads(row.value)["id"] == 3]
    assert letters[3]["dlq.original_offset"] == b"%d" % place.offset
    assert letters[3]["dlq.original_partition"] == b"%d" % place.partition


def test_a_batch_ends_before_the_first_record_that_is_not_due(
    bootstrap: str, topic: str, admin: Admin
) -> None:
    topics = [f"{topic}.retry.1", f"{topic}.retry.2"]
    now_ms = int(time.time() * 1000)
    with Producer(bootstrap_servers=bootstrap) as producer:
        for name in topics:
            admin.create_topic(name, partitions=2)
            for hours in (5, 3, 2, 0):
                producer.send(name, b"v", partition=0, timestamp_ms=now_ms - hours * HOUR_MS)
    options = read_options(
        {
            "kafka.bootstrap.servers": bootstrap,
            "subscribe": ",".join(topics),
            "startingOffsets": "earliest",
        },
        is_stream=True,
    )

    def latest(first_delay_ms: int, second_delay_ms: int, begin: Any = None) -> list[int]:
        reader = RetryReader(options, dict(zip(topics, (first_delay_ms, second_delay_ms), strict=True)))
        try:
            start = begin or reader.initialOffset()
            found = reader.latestOffset(start, reader.getDefaultReadLimit())
            return [found[name]["0"] for name in topics]
        finally:
            reader.stop()

    assert latest(HOUR_MS, 4 * HOUR_MS) == [3, 1]
    assert latest(6 * HOUR_MS, 0) == [0, 4]
    # What was read stays read, whatever the clock says.
    read = {name: {"0": 2, "1": 0} for name in topics}
    assert latest(6 * HOUR_MS, 4 * HOUR_MS, read) == [2, 2]


def test_records_of_any_format_can_be_tried_again(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    rules = "rules: [{name: some, check: _value IS NOT NULL, retry: true}]"
    sources = [
        f"  avro: {{topic: a, decode: {{format: avro, schema: string}}, {rules}}}",
        f"  text: {{topic: [b, c], decode: {{format: text}}, {rules}}}",
        f"  raw: {{topic: d, decode: {{format: raw}}, {rules}}}",
        "  files: {files: any, decode: {format: raw}}",
    ]
    head = "pipeline: again\nbrokers: any:1\ncheckpoint: checkpoint\ndead-letters: dead\nretry: {backoff: 5 seconds}\n"
    both = "SELECT 1 AS x, * FROM avro UNION ALL SELECT 1 AS x, decode(value, 'utf-8') AS value, _topic, _partition, "
    both += "_offset, _timestamp, _key, _value, _headers FROM files"
    transform = f"transforms:\n  - name: both\n    sql: {both}\n    {rules}\n"
    sinks = "sinks:\n" + "".join(
        f"  - {{from: {name}, topic: out, partitions: 1}}\n" for name in ("both", "text", "raw")
    )
    path.write_text("\n".join([f"{head}sources:", *sources, transform + sinks]))
    (tmp_path / "any").mkdir()
    spec = load(path)
    validate(spec, with_brokers=False, spark=spark)
    assert list(retry_topics(spec)) == [f"{topic}.again.retry.1" for topic in "abcd"]
