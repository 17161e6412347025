"""A pipeline from a file: decoded, checked, transformed, and written exactly once, with dead letters beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from strandline.client.sync import Admin, Producer
from strandline.pipeline.plan.decoding import decode_records
from strandline.pipeline.plan.plan import PipelinePlan
from strandline.pipeline.runtime.runner import Runner
from strandline.pipeline.spec.reader import load
from strandline.pipeline.spec.spec import ORIGIN
from tests.spark.topics import rows_of

SPEC = """
pipeline: test
brokers: {brokers}
checkpoint: checkpoint
commit-group: {topic}-group
sources:
  orders:
    topic: {topic}
    max-records-per-batch: 40
    decode:
      format: json
      schema:
        id: bigint not null
        amount: double
    rules:
      - name: positive
        check: amount > 0
transforms:
  - name: doubled
    sql: SELECT id, amount * 2 AS amount FROM orders
sinks:
  - from: doubled
    topic: {topic}-out
    key: id
    partitions: 2
"""


@pytest.fixture
def source(bootstrap: str, topic: str, admin: Admin) -> str:
    admin.create_topic(topic, partitions=2)
    return topic


def spec_file(directory: Path, text: str, **values: str) -> Path:
    path = directory / "spec.yaml"
    path.write_text(text.format(**values))
    return path


def put(bootstrap: str, topic: str, values: list[bytes | None]) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number, value in enumerate(values):
            producer.send(topic, value, b"key-%d" % number, headers=[("trace", b"t-%d" % number)])


def test_a_value_is_read_once_however_many_rules_and_fields_look_at_it(spark: Any, tmp_path: Path) -> None:
    plan = PipelinePlan(spark, load(spec_file(tmp_path, SPEC, brokers="127.0.0.1:1", topic="any")))
    output: Any = plan.output()
    optimizer = output.sparkSession._jsparkSession.sessionState().optimizer()
    text = optimizer.execute(output._jdf.queryExecution().analyzed()).toString()
    assert text.count("from_json") == 2  # for the output, and for dead letters


def test_records_come_out_once_and_bad_ones_are_dead_letters(
    spark: Any, bootstrap: str, source: str, tmp_path: Path, admin: Admin
) -> None:
    bad: list[bytes | None] = [
        b"{no json",
        b'{"amount": 1}',
        b'{"id": 7, "amount": -3}',
        None,
        b'{"id": "x"}',
    ]
    good = [json.dumps({"id": number, "amount": number + 0.5}).encode() for number in range(95)]
    put(bootstrap, source, [*good, *bad])
    spec = load(spec_file(tmp_path, SPEC, brokers=bootstrap, topic=source))
    events: list[dict[str, Any]] = []
    Runner(spec, spark=spark, on_event=events.append).run()

    written = [json.loads(row.value) for row in rows_of(bootstrap, f"{source}-out", 2)]
    assert sorted(row["id"] for row in written) == list(range(95))
    assert all(row["amount"] == 2 * (row["id"] + 0.5) for row in written)
    letters = rows_of(bootstrap, f"{source}.dlq", 2)
    assert sorted(map(repr, (letter.value for letter in letters))) == sorted(map(repr, bad))
    by_value = {letter.value: dict(letter.headers) for letter in letters}
    negative = by_value[b'{"id": 7, "amount": -3}']
    assert negative["dlq.stage"] == b"rule positive"
    assert negative["dlq.error"] == b"rule positive is not met: amount > 0"
    assert negative["dlq.original_topic"] == source.encode()
    assert {"dlq.original_partition", "dlq.original_offset", "dlq.original_timestamp"} <= negative.keys()
    assert negative["trace"] == b"t-97"
    assert by_value[b"{no json"]["dlq.stage"] == b"decode"
    assert by_value[b'{"amount": 1}']["dlq.error"] == b"the field id is missing or null"

    batches = [event for event in events if event["event"] == "batch"]
    assert sum(event["records"]["orders"] for event in batches) == 100
    assert max(event["records"]["orders"] for event in batches) <= 40
    last = events[-1]
    assert last["event"] == "finished"
    assert last["queries"]["topics"]["written"] == {f"{source}-out": 95}
    assert last["queries"]["topics"]["dead_letters"] == {f"{source}.dlq": 5}
    assert last["queries"]["topics"]["lag"] == 0
    assert admin.list_group_offsets(f"{source}-group")


@pytest.mark.parametrize("options", ["{}", "{allowComments: true}"])
def test_a_value_is_one_json_object_and_nothing_else(spark: Any, tmp_path: Path, options: str) -> None:
    text = SPEC.replace(
        "format: json", f"format: json\n      options: {options.replace('{', '{{').replace('}', '}}')}"
    )
    spec = load(spec_file(tmp_path, text, brokers="any:1", topic="any"))
    good = ['{"id": 1}', ' {"id": 1}\n', '{"id": 1, "amount": NaN}', '{"id": 1, "more": [{}]}']
    comment = '{"id": 1} // one'
    bad = [
        '{"id": 1}{"id": 2}',
        '{"id": 1},{"id": 2}',
        '{"id": 1} 2',
        '{"id": 1}]',
        '{"id": 1}}',
        '{"id": 1} "',
        '{"id": 1}, "amount": 2',
        '[{"id": 1}]',
        "null",
        "",
        " ",
    ]
    (bad if options == "{}" else good).append(comment)
    rows = spark.createDataFrame([(each.encode(),) for each in good + bad], "_value binary")
    places = [f"CAST(null AS string) AS {name}" for name in ORIGIN if name != "_value"]
    found = decode_records(rows.selectExpr("_value", *places), spec.sources[0]).collect()
    assert [row["_value"].decode() for row in found if row["_failure"] is None] == good
    assert {row["id"] for row in found if row["_failure"] is None} == {1}
    errors = {row["_failure"]["error"] for row in found if row["_failure"] is not None}
    assert errors == {"the value is not a JSON object that fits the schema"}
