"""Writes the topics and records for orders.yaml. `python examples/pipelines/orders_data.py [BOOTSTRAP] [ORDERS]`

The records are the same each time: some orders are broken, and customer c-9 was deleted.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from strandline.client.sync import Admin, Producer

REGIONS = ("north", "south", "west")
CUSTOMERS = 20
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def customers() -> list[tuple[str, dict[str, str] | None]]:
    """Returns customers in the order in which they are written: some move, one is deleted."""
    found: list[tuple[str, dict[str, str] | None]] = []
    for number in range(CUSTOMERS):
        name = f"c-{number}"
        found.append(
            (name, {"customer_id": name, "name": f"Customer {number}", "region": REGIONS[number % 3]})
        )
    found.append(("c-4", {"customer_id": "c-4", "name": "Customer 4", "region": "west"}))
    found.append(("c-9", None))
    return found


def orders(count: int, first: int = 0) -> Iterator[bytes]:
    """Yields orders numbered from `first` on, of which one in fifty is broken in some way."""
    chance = random.Random(17 + first)
    for number in range(first, first + count):
        order = {
            "order_id": f"o-{number}",
            "customer_id": f"c-{chance.randrange(CUSTOMERS)}",
            "amount": str(chance.randrange(100, 100_000) / 100),
            "at": (BEGIN + timedelta(seconds=10 * number)).isoformat(),
        }
        match number % 250:
            case 49:
                yield b'{"order_id": "o-'
                continue
            case 99:
                order["amount"] = "-1.00"
            case 149:
                del order["customer_id"]
            case 199:
                order["order_id"] = f"x-{number}"
            case 249:
                order["amount"] = "much"
        yield json.dumps(order).encode()


def fill(bootstrap: str, count: int = 2000) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin, Producer(bootstrap_servers=bootstrap) as producer:
        admin.create_topic("orders", partitions=3)
        admin.create_topic("customers", partitions=1, configs={"cleanup.policy": "compact"})
        for key, customer in customers():
            value = None if customer is None else json.dumps(customer).encode()
            producer.send("customers", value, key.encode())
        for number, order in enumerate(orders(count)):
            producer.send("orders", order, b"o-%d" % number)


if __name__ == "__main__":
    fill(
        sys.argv[1] if len(sys.argv) > 1 else "localhost:9092",
        int(sys.argv[2]) if len(sys.argv) > 2 else 2000,
    )
