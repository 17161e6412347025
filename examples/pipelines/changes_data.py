"""Writes the topic and records for changes.yaml, as Debezium writes them.

`python examples/pipelines/changes_data.py [BOOTSTRAP]`
"""

from __future__ import annotations

import json
import sys
from typing import Any

from strandline.client.sync import Admin, Producer

TOPIC = "inventory.customers"


def row(number: int, name: str) -> dict[str, Any]:
    return {"id": number, "name": name, "email": f"{name.lower()}@example.com"}


def first_changes() -> list[tuple[int, dict[str, Any] | None]]:
    """Returns envelopes with their ids, in order; None is a tombstone."""
    return [
        (1, {"op": "r", "ts_ms": 1000, "before": None, "after": row(1, "Ada")}),
        (2, {"op": "r", "ts_ms": 1000, "before": None, "after": row(2, "Bo")}),
        (3, {"op": "c", "ts_ms": 2000, "before": None, "after": row(3, "Cy")}),
        (2, {"op": "u", "ts_ms": 3000, "before": row(2, "Bo"), "after": row(2, "Bob")}),
        (4, {"op": "c", "ts_ms": 3500, "before": None, "after": row(4, "Di")}),
        (3, {"op": "d", "ts_ms": 4000, "before": row(3, "Cy"), "after": None}),
        (3, None),
    ]


def later_changes() -> list[tuple[int, dict[str, Any] | None]]:
    """Returns later envelopes: compaction has left only the tombstone of row 4, row 3 comes again, and one operation is
    not Debezium's."""
    return [
        (1, {"op": "u", "ts_ms": 5000, "before": row(1, "Ada"), "after": row(1, "Ada L.")}),
        (4, None),
        (3, {"op": "c", "ts_ms": 6000, "before": None, "after": row(3, "Cyrus")}),
        (5, {"op": "?", "ts_ms": 7000, "before": None, "after": row(5, "Eve")}),
    ]


def create(bootstrap: str) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(TOPIC, partitions=2, configs={"cleanup.policy": "compact"})


def put(bootstrap: str, changes: list[tuple[int, dict[str, Any] | None]]) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number, change in changes:
            value = None if change is None else json.dumps(change).encode()
            producer.send(TOPIC, value, json.dumps({"id": number}).encode())


if __name__ == "__main__":
    address = sys.argv[1] if len(sys.argv) > 1 else "localhost:9092"
    create(address)
    put(address, first_changes() + later_changes())
