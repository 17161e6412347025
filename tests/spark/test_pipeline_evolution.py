"""JSON whose fields come and go in the middle of a stream: the schema of the columns decides what that means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from strandline.client.sync import Admin, Producer
from strandline.pipeline.runtime.runner import Runner
from strandline.pipeline.spec.reader import load
from tests.spark.topics import rows_of

SPEC = """
pipeline: evolving
brokers: {brokers}
checkpoint: checkpoint
sources:
  orders:
    topic: {topic}
    decode:
      format: json
      schema: {schema}
sinks:
  - {{from: orders, topic: {topic}-out, partitions: 1}}
"""
FIRST = "{id: bigint not null, note: string}"
SECOND = "{id: bigint not null, note: string, place: 'struct<city: string, zip: int>'}"


def test_json_fields_come_and_go_while_the_pipeline_goes_on(
    spark: Any, bootstrap: str, topic: str, admin: Admin, tmp_path: Path
) -> None:
    admin.create_topic(topic, partitions=1)
    path = tmp_path / "spec.yaml"

    def run(schema: str, *values: dict[str, Any]) -> list[dict[str, Any]]:
        """Returns all output rows so far."""
        with Producer(bootstrap_servers=bootstrap) as producer:
            for value in values:
                producer.send(topic, json.dumps(value).encode())
        path.write_text(SPEC.format(brokers=bootstrap, topic=topic, schema=schema))
        Runner(load(path), spark=spark).run()
        return [json.loads(row.value) for row in rows_of(bootstrap, f"{topic}-out", 1)]

    early = {
        "id": 2,
        "note": "b",
        "place": {"city": "Ulm", "zip": 7},
    }  # the producer is ahead of the pipeline
    out = run(FIRST, {"id": 1, "note": "a"}, early, {"id": 3})
    assert sorted(out, key=lambda row: row["id"]) == [
        {"id": 1, "note": "a"},
        {"id": 2, "note": "b"},
        {"id": 3},
    ]
    gone = {"note": "without a number"}
    other = {"id": 6, "place": "Ulm"}  # of another type
    out = run(SECOND, {"id": 4, "note": "old"}, {"id": 5, "place": {"city": "Bonn", "more": 1}}, gone, other)
    assert sorted(out[3:], key=lambda row: row["id"]) == [
        {"id": 4, "note": "old"},
        {"id": 5, "place": {"city": "Bonn"}},
    ]
    letters = {
        json.loads(row.value).get("id"): dict(row.headers) for row in rows_of(bootstrap, f"{topic}.dlq", 1)
    }
    assert {number: headers["dlq.error"] for number, headers in letters.items()} == {
        None: b"the field id is missing or null",
        6: b"the value is not a JSON object that fits the schema",
    }
