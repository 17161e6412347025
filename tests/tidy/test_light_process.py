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


def test_a_node_on_which_nobody_can_set_faults_has_loaded_nothing_of_them() -> None:
    script = """
import asyncio, sys, tempfile
from strandline.node import launcher
from strandline.node.config_providers import broker_config

async def main():
    with tempfile.TemporaryDirectory() as data:
        settings = launcher.embedded_settings(port=0, data=data + "/d", host="127.0.0.1")
        node = launcher.RunningNode(broker_config(settings), launcher.stderr_events(node=1, level="error"))
        await node.start()
        print(type(node.disk).__name__, [name for name in sys.modules if ".faults" in name])
        await node.stop()

asyncio.run(main())
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout == "RealDisk []\n"
