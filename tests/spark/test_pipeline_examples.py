"""The shipped pipelines do what they say, with the data that is shipped with them."""

from __future__ import annotations

import importlib.util
import json
from collections import defaultdict
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from strandline.pipeline.plan.table_sink import read_table
from strandline.pipeline.runtime.runner import Runner
from strandline.pipeline.spec.reader import load
from tests.oracle.apache_kafka import ApacheKafka
from tests.spark.topics import rows_of

EXAMPLES = Path(__file__).parents[2] / "examples" / "pipelines"


def module_of(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(spark: Any, bootstrap: str, name: str, directory: Path, **variables: str) -> dict[str, Any]:
    """Runs an example to its end, and returns its last event."""
    environment = {"BROKERS": bootstrap, "CHECKPOINT": str(directory / name), **variables}
    return Runner(load(EXAMPLES / f"{name}.yaml", environment), spark=spark).run()


def last_by_key(bootstrap: str, topic: str, partitions: int) -> dict[str, Any]:
    return {
        row.key.decode(): json.loads(row.value) for row in rows_of(bootstrap, topic, partitions) if row.value
    }


def test_orders_are_checked_enriched_summed_up_and_watched(
    spark: Any, bootstrap: str, tmp_path: Path
) -> None:
    check_orders(spark, bootstrap, tmp_path)


@pytest.mark.oracle
def test_orders_come_out_the_same_on_apache_kafka(spark: Any, apache: ApacheKafka, tmp_path: Path) -> None:
    check_orders(spark, apache.bootstrap, tmp_path)


def check_orders(spark: Any, bootstrap: str, tmp_path: Path) -> None:
    data = module_of("orders_data")
    data.fill(bootstrap, 500)
    ended = run(spark, bootstrap, "orders", tmp_path)

    regions = {key: customer["region"] for key, customer in data.customers() if customer is not None}
    del regions["c-9"]
    good, bad = [], 0
    for number, value in enumerate(data.orders(500)):
        if number % 50 == 49:
            bad += 1
        else:
            good.append(json.loads(value))
    expected: dict[str, Decimal] = defaultdict(Decimal)
    for order in good:
        region = regions.get(order["customer_id"], "unknown")
        expected[f"{region}|{datetime.fromisoformat(order['at']):%Y-%m-%dT%H}"] += Decimal(order["amount"])

    enriched = last_by_key(bootstrap, "orders.enriched", 3)
    assert {key: row["region"] for key, row in enriched.items()} == {
        order["order_id"]: regions.get(order["customer_id"], "unknown") for order in good
    }
    assert len(rows_of(bootstrap, "orders.enriched", 3)) == len(good)
    revenue = last_by_key(bootstrap, "orders.revenue", 3)
    assert {key: Decimal(str(row["revenue"])) for key, row in revenue.items()} == expected
    alerts = rows_of(bootstrap, "orders.alerts", 1)
    assert len(alerts) == sum(Decimal(order["amount"]) >= 900 for order in good)
    stages = [dict(letter.headers)["dlq.stage"] for letter in rows_of(bootstrap, "orders.dlq", 3)]
    assert sorted(stages) == [b"decode"] * 6 + [b"rule known-id"] * 2 + [b"rule positive-amount"] * 2
    assert len(stages) == bad
    assert ended["queries"]["topics"]["records"]["orders"] == 500


def test_clicks_from_files_and_topic_become_sessions(spark: Any, bootstrap: str, tmp_path: Path) -> None:
    module_of("clicks_data").fill(bootstrap, tmp_path / "history")
    ended = run(
        spark,
        bootstrap,
        "clicks",
        tmp_path,
        HISTORY=str(tmp_path / "history"),
        SESSIONS=str(tmp_path / "sessions"),
    )
    expected = sorted((user, clicks) for user in ("ann", "ben", "cat") for clicks in (6, 3))
    written = [json.loads(row.value) for row in rows_of(bootstrap, "clicks.sessions", 2)]
    assert sorted((row["user"], row["clicks"]) for row in written) == expected
    rows = spark.read.parquet(str(tmp_path / "sessions")).collect()
    assert sorted((row["user"], row["clicks"]) for row in rows) == expected
    (letter,) = rows_of(bootstrap, "clicks.dlq", 2)
    headers = dict(letter.headers)
    assert (letter.value, headers["dlq.stage"]) == (b"no click", b"decode")
    assert headers["file"].endswith(b"/clicks.jsonl")
    assert "dlq.original_topic" not in headers
    assert ended["queries"]["topics"]["records"] == {"live": 13, "history": 19}


def test_changes_become_a_table(spark: Any, bootstrap: str, tmp_path: Path) -> None:
    data = module_of("changes_data")
    data.create(bootstrap)
    data.put(bootstrap, data.first_changes())
    table = tmp_path / "customers"
    run(spark, bootstrap, "changes", tmp_path, TABLE=str(table))
    assert names_of(spark, table) == {1: "Ada", 2: "Bob", 4: "Di"}
    data.put(bootstrap, data.later_changes())
    ended = run(spark, bootstrap, "changes", tmp_path, TABLE=str(table))
    assert ended["queries"]["table-customers"]["records"] == {"changes": 4}
    assert names_of(spark, table) == {1: "Ada L.", 2: "Bob", 3: "Cyrus"}
    (letter,) = rows_of(bootstrap, f"{data.TOPIC}.dlq", 2)
    assert dict(letter.headers)["dlq.stage"] == b"rule known-operation"


def names_of(spark: Any, table: Path) -> dict[int, str]:
    return {row["id"]: row["name"] for row in read_table(spark, table).collect()}
