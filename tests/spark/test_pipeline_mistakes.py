"""Mistakes that only brokers or Spark can find are reported with the line of the spec, before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from strandline.client.sync import Admin, Producer
from strandline.pipeline.runtime.explain import explain, in_words
from strandline.pipeline.runtime.topics import create_topics
from strandline.pipeline.runtime.validation import analyse, validate
from strandline.pipeline.spec.reader import load
from strandline.pipeline.spec.yaml_lines import SpecError
from tests.record_times import recent_ms
from tests.unit.pipeline.specs import SPEC


def written(directory: Path, text: str) -> Any:
    path = directory / "spec.yaml"
    path.write_text(text)
    return load(path)


@pytest.mark.parametrize(
    ("old", "new", "line", "text"),
    [
        ("FROM orders WHERE", "FRM orders WHERE", 18, "PARSE_SYNTAX_ERROR"),
        (
            "amount > 10",
            "amont > 10",
            18,
            "`amont` cannot be resolved. Did you mean one of the following? [`amount`",
        ),
        ("FROM orders", "FROM ordrs", 18, "there is no stage 'ordrs' before this: did you mean orders?"),
        ("    key: id", "    key: customer", 22, "`customer`"),
        ("    key: id", "    value: upper(", 22, "PARSE_SYNTAX_ERROR"),
        (
            "    watermark:",
            "    rules: [{name: paid, check: payed > 0}]\n    watermark:",
            13,
            "sources.orders.rules.paid: ",
        ),
        ("SELECT *", "SELECT max(id) AS id", 20, "is not supported for streaming aggregations"),
        ("SELECT *", "SELECT id, id AS ID", 20, "has the column 'id' twice"),
        (
            "SELECT *",
            "INSERT INTO elsewhere SELECT *",
            17,
            "a statement (InsertIntoStatement) and not a query",
        ),
        (
            "SELECT *\n",
            "CREATE TABLE x AS SELECT *\n",
            17,
            "a statement (CreateTableAsSelect) and not a query",
        ),
        ("    key: id", "    key: max(id)", 22, "MISSING_GROUP_BY"),
        ("    key: id", "    value: '*'", 22, "INVALID_USAGE_OF_STAR"),
        (
            "    watermark:",
            "    rules: [{name: paid, check: sum(amount) > 0}]\n    watermark:",
            13,
            "sources.orders.rules.paid: [MISSING_GROUP_BY]",
        ),
        (
            "    watermark:",
            "    rules: [{name: paid, check: amount}]\n    watermark:",
            13,
            "sources.orders.rules.paid: this must be a condition (true or false), and is decimal(9,2)",
        ),
        ("topic: big-orders", "delta: table", 20, "needs a package that Spark does not have"),
    ],
)
def test_spark_judges_sql_before_anything_runs(
    spark: Any, tmp_path: Path, old: str, new: str, line: int, text: str
) -> None:
    assert old in SPEC
    changed = SPEC.replace(old, new, 1)
    if "delta" in new:
        changed = changed.replace("    key: id\n", "")
    spec = written(tmp_path, changed)
    with pytest.raises(SpecError) as raised:
        validate(spec, with_brokers=False, spark=spark)
    (mistake,) = raised.value.mistakes
    assert (mistake.line, text in mistake.text) == (line, True), mistake


def test_a_function_that_ends_everything_is_a_mistake(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "ends_all.py").write_text("def ends(rows):\n    raise SystemExit(4)\n")
    text = SPEC.replace("sinks:", "  - {name: ended, python: ends_all:ends, inputs: [big]}\nsinks:")
    with pytest.raises(SpecError, match=r"transforms\.ended: SystemExit 4"):
        validate(written(tmp_path, text), with_brokers=False, spark=spark)


def test_columns_may_be_called_anything(spark: Any, tmp_path: Path) -> None:
    odd = "'a.b': string not null\n        'c`d e': int\n        at: timestamp"
    text = SPEC.replace("at: timestamp", odd).replace("    key: id", "    key: '`a.b`'")
    validate(written(tmp_path, text), with_brokers=False, spark=spark)


def test_rules_after_a_transform_need_the_origin_of_rows(spark: Any, tmp_path: Path) -> None:
    text = SPEC.replace("SELECT *", "SELECT id, amount").replace(
        "sinks:", "    rules: [{name: few, check: id < 5}]\nsinks:"
    )
    with pytest.raises(SpecError, match="need the columns _topic, _partition"):
        validate(written(tmp_path, text), with_brokers=False, spark=spark)


def test_a_source_with_retries_feeds_only_one_transform(spark: Any, tmp_path: Path) -> None:
    rule = "    rules: [{name: few, check: id < 5, retry: true}]\n"
    text = SPEC.replace("sinks:", f"{rule}retry: {{backoff: 5 seconds}}\nsinks:").replace(
        "SELECT *", "SELECT o.*"
    )
    text = text.replace("FROM orders", "FROM orders o")
    behind = "  - {name: sums, sql: SELECT id AS orders FROM big}\nretry:"  # a column's name is no stage's
    validate(written(tmp_path, text.replace("retry: {b", f"{behind} {{b")), with_brokers=False, spark=spark)
    for beside in ("WITH found AS (TABLE Orders) FROM found", "SELECT b.* FROM big b NATURAL JOIN orders"):
        changed = text.replace("retry: {b", f"  - {{name: beside, sql: '{beside}'}}\nretry: {{b")
        with pytest.raises(SpecError, match="transform beside, which takes from orders too") as raised:
            validate(written(tmp_path, changed), with_brokers=False, spark=spark)
        assert raised.value.mistakes[0].line == 19


def test_after_a_nondeterministic_rule_only_topics_are_written(spark: Any, tmp_path: Path) -> None:
    table = "  names: {topic: names, as: table, decode: {format: text}}\ntransforms:"
    joined = "SELECT o.*, n.value FROM orders o LEFT JOIN names n ON o._key = n._key --"
    for check, sql, more, why in (
        ("id < 5", "SELECT *", "", None),
        ("value IS NOT NULL", joined, "", "depends on a table"),
        ("id < 5", "SELECT *, uuid() AS event", "", None),
        ("at < current_timestamp()", "SELECT *", "", "depends on the clock"),
        ("id < 5", "SELECT *", "retry: {backoff: 5 seconds}\n", "it is tried again"),
    ):
        retry = ", retry: true" if more else ""
        rule = f"    rules: [{{name: few, check: {check}{retry}}}]\n"
        text = SPEC.replace("transforms:", table).replace("SELECT *\n      FROM orders", f"{sql} FROM orders")
        text = text.replace("sinks:", f"{rule}{more}sinks:")
        validate(written(tmp_path, text), with_brokers=False, spark=spark)
        spec = written(tmp_path, text.replace("topic: big-orders\n    key: id", "parquet: out"))
        if why is None:
            validate(spec, with_brokers=False, spark=spark)
            continue
        with pytest.raises(SpecError, match=f"parquet out comes after a rule of big, and .*{why}") as raised:
            validate(spec, with_brokers=False, spark=spark)
        assert raised.value.mistakes[0].line == spec.sinks[0].line


def test_a_rule_of_chance_is_refused(spark: Any, tmp_path: Path) -> None:
    text = SPEC.replace("sinks:", "    rules: [{name: few, check: id < rand()}]\nsinks:")
    with pytest.raises(SpecError, match=r"spec.yaml:19: the result of the rules of big can vary, and Spark"):
        validate(written(tmp_path, text), with_brokers=False, spark=spark)


def test_functions_are_looked_for_beside_the_spec(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "beside_the_spec.py").write_text(
        "def fewer(rows):\n    return rows.where('id < 5')\ndef wrong(rows):\n    return 5\n"
    )
    sql = "    sql: |\n      SELECT *\n      FROM orders WHERE amount > 10\n"
    for function, complaint in (
        ("fewer", None),
        ("wrong", "must return a DataFrame, and returned int"),
        ("none", "cannot be imported: AttributeError"),
    ):
        text = SPEC.replace(sql, f"    python: beside_the_spec:{function}\n    inputs: orders\n")
        spec = written(tmp_path, text)
        if complaint is None:
            validate(spec, with_brokers=False, spark=spark)
            continue
        with pytest.raises(SpecError, match=complaint) as raised:
            validate(spec, with_brokers=False, spark=spark)
        assert raised.value.mistakes[0].line == 16


def test_missing_topics_and_brokers_are_errors(
    bootstrap: str, topic: str, admin: Admin, tmp_path: Path
) -> None:
    named = SPEC.replace("localhost:9092", bootstrap).replace("topic: orders", f"topic: {topic}")
    with pytest.raises(SpecError) as raised:
        validate(written(tmp_path, named), with_spark=False)
    assert [each.line for each in raised.value.mistakes] == [6, 21]
    admin.create_topic(topic, partitions=1)
    validate(written(tmp_path, named.replace("    key: id", "    partitions: 1")), with_spark=False)
    # Nobody listens there: the port is reserved.
    away = SPEC.replace("localhost:9092", "127.0.0.1:1\nclient: {default.api.timeout.ms: 1000}")
    with pytest.raises(SpecError, match=r"spec.yaml:2: brokers: 127.0.0.1:1 does not respond"):
        validate(written(tmp_path, away), with_spark=False)


def test_brokers_without_an_address_are_an_error_at_once(tmp_path: Path) -> None:
    text = SPEC.replace("localhost:9092", "nowhere.invalid:9092\nclient: {default.api.timeout.ms: 300000}")
    with pytest.raises(SpecError, match=r"spec.yaml:2: brokers: .*no address is known for nowhere\.invalid"):
        validate(written(tmp_path, text), with_spark=False)


@pytest.mark.parametrize("options", ["allowComments: maybe", "timeZone: Nowhere/Land", "samplingRatio: many"])
def test_an_option_that_sparks_decoder_refuses_has_the_line_of_its_source(
    spark: Any, tmp_path: Path, options: str
) -> None:
    text = SPEC.replace("format: json", f"format: json\n      options: {{{options}}}")
    with pytest.raises(SpecError, match=r"spec.yaml:5: sources.orders.decode: .*(maybe|Nowhere|many)"):
        validate(written(tmp_path, text), with_brokers=False, spark=spark)


def test_a_sinks_topic_that_brokers_refuse_is_an_error_with_its_line(
    bootstrap: str, topic: str, admin: Admin, tmp_path: Path
) -> None:
    text = SPEC.replace("localhost:9092", bootstrap).replace("topic: big-orders", f"topic: {topic}")
    text = text.replace("    key: id", "    partitions: 1\n    configs: {cleanup.policy: bogus}")
    spec = written(tmp_path, text)
    complaint = rf"spec.yaml:20: topic {topic} cannot be created: .*cleanup.policy"
    with pytest.raises(SpecError, match=complaint):
        create_topics(spec)
    with pytest.raises(SpecError, match=complaint):
        validate(spec, with_spark=False)
    assert topic not in admin.list_topics()


def test_a_plan_is_explained(spark: Any, tmp_path: Path) -> None:
    spec = written(tmp_path, SPEC)
    explained = explain(spec, analyse(spark, spec))
    assert explained["stages"][0]["columns"]["amount"] == "decimal(9,2)"
    lines = in_words(json.loads(json.dumps(explained))).splitlines()
    assert "  orders: stream of topic orders as json" in lines
    assert "      amount decimal(9,2)" in lines
    assert "query topics (append mode): exactly once, one transaction per batch for all of these" in lines
    assert "  big -> topic big-orders, key id" in lines
    assert "  dead letters -> topic orders.dlq" in lines


def test_mistakes_of_all_stages_and_sinks_are_found_in_one_start(spark: Any, tmp_path: Path) -> None:
    text = SPEC.replace("amount > 10", "amont > 10").replace(
        "    watermark:",
        "    rules: [{name: paid, check: payed > 0}, {name: few, check: idd < 5}]\n    watermark:",
    )
    other = "  - {name: other, sql: SELECT nothing_here FROM names}\n"
    names = "  names: {topic: names, as: table, decode: {format: text}}\ntransforms:"
    text = text.replace("sinks:", f"{other}sinks:").replace("transforms:", names)
    with pytest.raises(SpecError) as raised:
        validate(written(tmp_path, text), with_brokers=False, spark=spark)
    texts = [each.text for each in raised.value.mistakes]
    # `big` reads `orders`, which is wrong: it is not judged, and neither is the sink that takes from it.
    assert [any(part in each for each in texts) for part in ("rules.paid", "rules.few", "nothing_here")] == [
        True
    ] * 3
    assert len(texts) == 3, texts


def test_topics_that_are_misspelt_are_suggested_with_the_line_of_the_topic(
    bootstrap: str, admin: Admin, tmp_path: Path
) -> None:
    admin.create_topic("shop-orders-near")
    text = SPEC.replace("localhost:9092", bootstrap).replace("topic: orders", "topic: shop-order-near")
    with pytest.raises(SpecError) as raised:
        validate(written(tmp_path, text), with_spark=False)
    line = 1 + next(n for n, each in enumerate(text.splitlines()) if "shop-order-near" in each)
    (mistake,) = [each for each in raised.value.mistakes if "shop-order-near" in each.text]
    assert mistake.line == line
    assert "does not exist: did you mean shop-orders-near?" in mistake.text


def test_records_that_retention_will_delete_are_warned_of(
    bootstrap: str, admin: Admin, topic: str, tmp_path: Path
) -> None:
    admin.create_topic(topic, partitions=2)
    admin.create_topic(f"{topic}-out")
    with Producer(bootstrap_servers=bootstrap) as producer:
        for timestamp_ms in (recent_ms() - 30 * 86_400_000, recent_ms()):
            producer.send(topic, b"x", b"k", timestamp_ms=timestamp_ms)
    text = SPEC.replace("localhost:9092", bootstrap).replace("topic: orders", f"topic: {topic}")
    text = text.replace("topic: big-orders", f"topic: {topic}-out")
    (warning,) = validate(written(tmp_path, text), with_spark=False)
    assert f"1 records of topic {topic} are older than its retention.ms" in warning.text
