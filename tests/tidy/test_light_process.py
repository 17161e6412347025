"""A broker's process stays small: heavy packages belong to the extras."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {"numpy", "numba", "pyarrow", "typer", "rich", "pydantic", "pytest", "opentelemetry", "google"}

SCRIPT = """
import asyncio, sys
from strandline.testing.embedded import broker

async def main():
    async with broker(metrics=True):
        print(" ".join(sorted({name.partition(".")[0] for name in sys.modules})))

asyncio.run(main())
"""


def test_a_running_broker_has_loaded_nothing_heavy() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=True
    )
    assert HEAVY & set(ran.stdout.split()) == set()
