"""A mistake in a spec is told with its line, and with the text to write instead."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from strandline.pipeline.plan.retries import retry_options
from strandline.pipeline.spec.dead_letter_topics import dead_letter_topics, retry_delays_ms, retry_topics
from strandline.pipeline.spec.reader import load
from strandline.pipeline.spec.yaml_lines import SpecError
from tests.unit.pipeline.specs import SPEC, mistakes_of


def test_a_spec_is_read_with_its_defaults(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    spec = load(path)
    assert (spec.name, spec.brokers, spec.mode, spec.master) == (
        "orders",
        "localhost:9092",
        "append",
        "local[*]",
    )
    (source,) = spec.sources
    assert source.options["startingOffsets"] == "earliest"
    assert [(each.name, each.type, each.required) for each in source.decode.columns] == [
        ("id", "bigint", True),
        ("amount", "decimal(9,2)", False),
        ("at", "timestamp", False),
    ]
    sql = spec.transforms[0].sql
    assert sql is not None
    assert sql.line == 17  # where the text begins, not its sign
    assert spec.located("out") == str(tmp_path / "out")
    assert spec.located("s3a://bucket/out") == "s3a://bucket/out"
    assert spec.dead_letter_topic("orders") == "orders.dlq"


@pytest.mark.parametrize(
    ("old", "new", "line", "text"),
    [
        (
            "amount: decimal(9, 2)",
            "ID: string",
            11,
            "there is id already, and Spark does not distinguish them",
        ),
        ("name: big", "name: ORDERS", 15, "a stage of that name exists already"),
        (
            "transforms:",
            "  Orders: {topic: o, decode: {format: raw}}\ntransforms:",
            14,
            "a source of that name",
        ),
        (
            "    watermark:",
            "    rules: [{name: paid, check: id > 0}, {name: paid, check: id > 1}]\n    watermark:",
            13,
            "another rule of this stage has that name",
        ),
        ("topic: big-orders", "topic: orders", 20, "without end: choose another topic"),
        ("topic: big-orders", "topic: __consumer_offsets", 20, "is an internal topic"),
        ("topic: big-orders", "topic: strandline-spark-batches", 20, "is an internal topic"),
        ("sinks:", "dead-letters: orders\nsinks:", 19, "dead-letters: orders is read by sources.orders"),
        ("    watermark:", "    options: {Subscribe: o}\n    watermark:", 13, "set topic: in the source"),
        (
            "    watermark:",
            "    options: {includeHeaders: no}\n    watermark:",
            13,
            "_headers is always there",
        ),
        ("sources:", "spark: {master: nowhere}\nsources:", 4, "use local[*], local[N], spark://HOST:PORT"),
        ("checkpoint: checkpoint", 'checkpoint: "a\\0b"', 3, "a null character"),
        ("checkpoint: checkpoint", "checkpoint: s3a://b/c", 3, "must be a directory on this machine"),
        ("checkpoint: checkpoint", "checkpoint: ./spec.yaml/c", 3, "spec.yaml is a file and not a directory"),
        ("decimal(9, 2)", "map<int, string>", 11, "the keys of a JSON object are text: use map<string, …>"),
        ("decimal(9, 2)", "array<map<string, map<date, int>>>", 11, "the keys of a JSON object are text"),
        ("    key: id", "    partitions: 99999999999", 22, "must be a positive number, not '99999999999'"),
        ("    key: id", "    partitions: ²", 22, "must be a positive number"),
        ("checkpoint:", "checkpont:", 3, "checkpont is not known: did you mean checkpoint?"),
        ("      format: json", "      format: jsn", 8, "cannot be 'jsn': did you mean json?"),
        (
            "    watermark:",
            "    rules: [{name: paid, check: amount > 0, retry: true}]\n    watermark:",
            13,
            "the spec has no delays: add retry: {backoff: [10 seconds, 5 minutes]}",
        ),
        (
            "sinks:",
            "retry: {backoff: 5 seconds}\nsinks:",
            19,
            "has no rule that uses it: set retry: true in a rule",
        ),
        ("sinks:", "retry: {backoff: [5 seconds, soon]}\nsinks:", 19, "must be like 10 seconds, not 'soon'"),
        ("sinks:", "retry: {}\nsinks:", 19, "must have 1 to 10 delays"),
        ("format: json", "format: parquet", 8, "cannot be 'parquet': that is for files"),
        (
            "    topic: orders",
            "    files: orders\n    max-files-per-batch: 0",
            7,
            "must be a positive number",
        ),
        ("    topic: orders", "    files: orders\n    start: latest", 7, "start is not known"),
        ("format: json", "format: avro", 10, "sources.orders.decode: a type without `type`"),
        ("bigint not null", "bigit not null", 10, "'bigit' is not a type of Spark: did you mean bigint?"),
        ("decimal(9, 2)", "decimal(9, 20)", 11, "a decimal has at most 38 digits"),
        ("column: at", "column: att", 13, "there is no column 'att': did you mean at?"),
        ("column: at", "column: id", 13, "the column id must be a timestamp, and is bigint"),
        ("delay: 1 hour", "delay: soon", 13, "must be like 10 minutes, not 'soon'"),
        ("from: big", "from: bigg", 20, "there is no stage 'bigg' before this: did you mean big?"),
        ("topic: big-orders", "parket: big", 20, "must have exactly one of topic, table, parquet"),
        ("    topic: orders", "    files: orders", 5, "set dead-letters: TOPIC in the spec"),
        ("    key: id", "    keys: id", 22, "sinks[0].keys is not known: did you mean key?"),
        ("    key: id", "    partitions: many", 22, "must be a positive number, not 'many'"),
        ("name: big", "name: orders", 15, "a stage of that name exists already"),
        ("name: big", "name: big-one", 15, "cannot be a stage's name"),
        ("    watermark: {", "    dedupe: [id]\n    watermrk: {", 13, "needs a watermark in the same stage"),
        (
            "pipeline: orders",
            "pipeline: orders\ntrigger: often",
            2,
            "use available-now, once, or every N seconds",
        ),
        ("pipeline: orders", "pipeline: orders\nclient: {linger.ms: 5}", 2, "linger.ms"),
        ("localhost:9092", "localhost:nowhere", 2, "localhost:nowhere"),
        ("localhost:9092", "${BROKERS}", 2, "${BROKERS}: the environment has no such variable"),
        (
            "    topic: orders",
            "    topic: orders\n    options: {startingOffset: x}",
            7,
            "did you mean startingOffsets?",
        ),
        (
            "    topic: orders",
            "    topic: orders\n    options: {kafka.fetch.max.byte: 5}",
            7,
            "did you mean fetch.max.bytes?",
        ),
        (
            "    topic: orders",
            "    topic: [orders, bad topic!]",
            6,
            "sources.orders.topic: the topic name 'bad topic!'",
        ),
        (
            "topic: big-orders",
            "topic: big/orders",
            21,
            "sinks[0].topic: the topic name 'big/orders' has characters",
        ),
        ("sinks:", "dead-letters: dead letters\nsinks:", 19, "dead-letters: the topic name 'dead letters'"),
        ("sinks:", "sinks: 5\nmore:", 19, "sinks must be a list"),
        ("amount > 10", "amount > \a10", 18, "this is not YAML: unacceptable character #x0007"),
        ("    watermark:", "    options: &loop {a: [*loop]}\n    watermark:", 13, "contains itself"),
        ("checkpoint: checkpoint", "checkpoint: [", 5, "this is not YAML"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, old: str, new: str, line: int, text: str) -> None:
    assert old in SPEC
    found = mistakes_of(tmp_path, SPEC.replace(old, new, 1))
    assert any(at == line and text in said for at, said in found), found


def test_csv_has_no_columns_within_columns(tmp_path: Path) -> None:
    text = SPEC.replace("topic: orders", "files: x", 1).replace("format: json", "format: csv")
    text = text.replace("decimal(9, 2)", "array<int>")
    ((line, said),) = mistakes_of(tmp_path, f"{text}dead-letters: dead\n")
    assert (line, "CSV has no array: read a string" in said) == (11, True)


def test_an_endless_nesting_is_told(tmp_path: Path) -> None:
    ((_, text),) = mistakes_of(tmp_path, f"pipeline: {'[' * 2000}")
    assert "nested too deeply" in text


AVRO = """\
pipeline: orders
brokers: localhost:9092
checkpoint: checkpoint
sources:
  orders:
    topic: orders
    decode:
      format: avro
      schema:
        type: record
        name: Order
        fields:
          - {name: id, type: long}
          - {name: at, type: {type: long, logicalType: timestamp-millis}}
          - name: lines
            type: {type: array, items: [null, string]}
    watermark: {column: at, delay: 1 hour}
sinks:
  - {from: orders, topic: out}
"""
INLINE = AVRO[AVRO.index("      schema:") : AVRO.index("    watermark")]


def test_columns_of_an_avro_schema_are_known_without_spark(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    text = json.dumps(yaml.safe_load(INLINE)["schema"])
    (tmp_path / "order.avsc").write_text(text.replace('"fields"', '\n\t"fields"'))
    for given in (INLINE, "      schema-file: order.avsc\n", f"      schema: |\n        {text}\n"):
        path.write_text(AVRO.replace(INLINE, given))
        (source,) = load(path).sources
        assert [(each.name, each.type) for each in source.decode.columns] == [
            ("id", "bigint"),
            ("at", "timestamp"),
            ("lines", "array<string>"),
        ]


@pytest.mark.parametrize(
    ("old", "new", "line", "text"),
    [
        ("items: [null, string]", "items: [int, string]", 16, "a union may have one type and null"),
        ("items: [null, string]", "items: Order", 16, "Order is within itself"),
        ("name: id, type: long", "name: id, type: lng", 13, "there is no type 'lng' before this"),
        ("name: id", "name: _value", 9, "the pipeline itself uses this name"),
        ("column: at", "column: id", 17, "the column id must be a timestamp, and is bigint"),
        (INLINE, "", 8, "schema is missing: give the Avro schema, or schema-file: order.avsc"),
        (INLINE, "      schema-file: none.avsc\n", 9, "none.avsc cannot be read"),
        (INLINE, f"{INLINE}      framing: registry\n", 17, "framing registry needs writer-schemas"),
        (INLINE, f"{INLINE}      framing: magic\n", 17, "cannot be 'magic'"),
        (
            INLINE,
            f"{INLINE}      writer-schema: {{type: record, name: Order, fields: [{{name: id, type: string}}]}}\n",
            17,
            "cannot become the columns: id was written as string, and is read as long",
        ),
        ("topic: orders", "files: orders", 8, "cannot be 'avro': that is for topics"),
    ],
)
def test_a_mistake_in_an_avro_schema_is_told_with_its_line(
    tmp_path: Path, old: str, new: str, line: int, text: str
) -> None:
    assert old in AVRO
    found = mistakes_of(tmp_path, AVRO.replace(old, new, 1))
    assert any(at == line and text in said for at, said in found), found


def test_a_mistake_in_a_schema_file_is_told_with_that_file(tmp_path: Path) -> None:
    (tmp_path / "order.avsc").write_text('{"type": "record", "name": "O",\n\t"fields": [\n{"name": "a"}]}')
    path = tmp_path / "spec.yaml"
    path.write_text(AVRO.replace(INLINE, "      schema-file: order.avsc\n").replace("    watermark", "#"))
    with pytest.raises(SpecError, match=r"order.avsc:3: .*a field must have `name` and `type`"):
        load(path)


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    text = SPEC.replace("brokers", "brokerz").replace("bigint", "bigit").replace("from: big", "from: huge")
    assert [line for line, _ in mistakes_of(tmp_path, text)] == [1, 2, 10, 20]


def test_variables_of_the_environment_are_filled_in(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.replace("localhost:9092", "${BROKERS}").replace("big-orders", "${OUT:-big-orders}"))
    spec = load(path, {"BROKERS": "kafka:9093"})
    assert (spec.brokers, spec.sinks[0].target) == ("kafka:9093", "big-orders")


def test_a_file_that_is_not_there_is_a_mistake_too(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="cannot be read"):
        load(tmp_path / "none.yaml")


def test_retry_topics_belong_to_the_pipeline_and_have_a_delay_each(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    rule = "    rules: [{name: paid, check: amount > 0, retry: true}]\n    watermark:"
    text = SPEC.replace("    watermark:", rule).replace(
        "sinks:", "retry: {backoff: [5 seconds, 1 hour]}\nsinks:"
    )
    path.write_text(text)
    spec = load(path)
    assert spec.retry is not None
    assert retry_delays_ms(spec.retry, ("orders",)) == {
        "orders.orders.retry.1": 5000,
        "orders.orders.retry.2": 3_600_000,
    }
    assert list(retry_topics(spec)) == ["orders.orders.retry.1", "orders.orders.retry.2"]
    path.write_text(text.replace("pipeline: orders", "pipeline: my orders"))
    with pytest.raises(SpecError, match=r"spec.yaml:1: pipeline is part of the names of retry topics, and"):
        load(path)


def test_retry_topics_are_read_from_their_beginning_and_at_once_wherever_the_source_begins() -> None:
    kept = {"subscribe": "orders", "maxOffsetsPerTrigger": "5", "startingOffsets": "earliest"}
    beginnings = {
        "startingtimestamp": "7",
        "startingOffsetsByTimestamp": '{"orders": {"0": 7}}',
        "startingOffsetsByTimestampStrategy": "latest",
    }
    patience = {"minOffsetsPerTrigger": "4", "maxTriggerDelay": "1h"}
    assert retry_options({**kept, **beginnings, **patience, "startingOffsets": "latest"}) == kept


def test_rows_of_files_that_a_rule_behind_a_transform_refuses_have_a_topic_to_go_to(tmp_path: Path) -> None:
    text = (
        "pipeline: p\nbrokers: b:1\ncheckpoint: c\n"
        "sources: {lines: {files: any, decode: {format: raw}}}\n"
        "transforms: [{name: t, sql: SELECT * FROM lines, rules: [{name: r, check: value IS NULL}]}]\n"
        "sinks: [{from: t, parquet: out}]\n"
    )
    ((line, why),) = mistakes_of(tmp_path, text)
    assert (line, "set dead-letters: TOPIC in the spec" in why) == (4, True)
    path = tmp_path / "spec.yaml"
    path.write_text(f"{text}dead-letters: dead\n")
    assert dead_letter_topics(load(path)) == {"dead": []}


@pytest.mark.parametrize(
    ("target", "others"),
    [
        ("parquet: checkpoint/out", "checkpoint checkpoint"),
        ("parquet: .", "checkpoint checkpoint"),
        ("table: ./x/../checkpoint/", "checkpoint checkpoint"),
        ("parquet: file:CHECKPOINT", "checkpoint checkpoint"),
        ("table: lake/orders", "delta lake"),
        ("parquet: lake", "delta lake"),
        ("parquet: s3a://b/c/d", "parquet s3a://b/c/"),
        ("delta: lake", None),
        ("parquet: lake2", None),
        ("parquet: s3a://other/c", None),
    ],
)
def test_no_directory_has_two_writers(tmp_path: Path, target: str, others: str | None) -> None:
    target = target.replace("CHECKPOINT", str(tmp_path / "checkpoint"))
    key = ", key: id" if target.startswith("table") else ""
    first = "  - {from: big, delta: lake}\n  - {from: big, parquet: 's3a://b/c/'}\n"
    text = f"{SPEC}{first}  - {{from: big, '{target.replace(': ', chr(39) + ': ' + chr(39), 1)}'{key}}}\n"
    if others is None:
        path = tmp_path / "spec.yaml"
        path.write_text(text)
        assert load(path, {}).sinks[3].target in target
        return
    found = mistakes_of(tmp_path, text)
    assert (25, True) in [(line, f"and {others} share a directory" in why) for line, why in found]
