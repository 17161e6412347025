"""Makes the values of records, the same for every client and both peers.

A client takes them in turn or at random from some thousand values that are made beforehand, so that they cost nothing
during the measurement. They are ASCII without line ends, because ProducerPerformance reads them from a file of lines.
"""

from __future__ import annotations

import json
import random
import string
from pathlib import Path

# More than fit into a batch of 1 MB that gets every sixth of them: a repetition inside it would compress too well.
_TOTAL_BYTES = 12_000_000
_COUNT_MAX = 12_000
_SEED = 20130708
_LETTERS = string.ascii_letters + string.digits
_CITIES = ("Amsterdam", "Bergen", "Cork", "Dakar", "Esbjerg", "Faro", "Galway", "Hobart")
_STATES = ("accepted", "packed", "shipped", "delivered", "returned")


def count(size: int) -> int:
    """Returns the number of different values of a size."""
    return min(_COUNT_MAX, _TOTAL_BYTES // size)


def incompressible(size: int) -> list[bytes]:
    """Returns values of random letters and digits, for records without a codec."""
    chance = random.Random(_SEED)
    return ["".join(chance.choices(_LETTERS, k=size)).encode() for _ in range(count(size))]


def compressible(size: int) -> list[bytes]:
    """Returns orders in JSON, as an application would write them, filled up with items to the size."""
    chance = random.Random(_SEED)
    return [_order(chance, number, size) for number in range(count(size))]


def _order(chance: random.Random, number: int, size: int) -> bytes:
    order = {
        "order_id": f"{chance.getrandbits(64):016x}",
        "customer": {"id": chance.randrange(100_000), "city": chance.choice(_CITIES)},
        "state": chance.choice(_STATES),
        "created_at": f"2024-05-{number % 28 + 1:02d}T{number % 24:02d}:{number % 60:02d}:00Z",
        "items": [],
    }
    items: list[dict[str, object]] = []
    while len(json.dumps(order | {"items": items})) < size - 100:
        items.append(
            {
                "sku": f"SKU-{chance.randrange(10_000):05d}",
                "quantity": chance.randrange(1, 9),
                "price_cents": chance.randrange(100, 99_999),
            }
        )
    text = json.dumps(order | {"items": items, "note": ""})
    padded = text[:-2] + " " * (size - len(text)) + text[-2:]
    assert len(padded) == size
    return padded.encode()


def write_lines(path: Path, values: list[bytes]) -> None:
    path.write_bytes(b"\n".join(values) + b"\n")


def read_lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()
