"""One seed is one run: in another process, with other hashes of strings, with and without the compiled kernel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

PROGRAM = """
import asyncio, sys
from strandline.sim.world import World
from tests.sim.load import Load

async def scenario(world):
    node = world.add_node()
    await node.start()
    loads = [Load(world, node, f"t{number}", configs={"flush.messages": str(number)}) for number in (1, 2)]
    for load in loads:
        await load.create()
        load.start()
    await asyncio.sleep(0.3)
    node.cut_power() if world.chance.random() < 0.5 else node.kill()
    await node.start()
    await asyncio.sleep(0.2)
    await node.stop()

with World(int(sys.argv[1])) as world:
    try:
        world.run(scenario(world))
    except Exception as error:
        print(type(error).__name__, end=" ")
    print(world.trace.count, world.trace_hash)
"""


def run(seed: int, hash_seed: int, *before: Path) -> str:
    paths = os.pathsep.join(map(str, (*before, ROOT, ROOT / "src")))
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(seed)],
        env={**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": str(hash_seed)},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout


def test_a_seed_gives_the_same_trace_in_processes_with_different_hashes() -> None:
    traces = [run(1, 1), run(1, 2)]
    assert traces[0] == traces[1]
    assert int(traces[0].split()[-2]) > 1000
    assert run(2, 1) != traces[0]


def test_a_seed_gives_the_same_trace_with_and_without_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "strandline_kernel.py").write_text("raise ImportError('left out for this test')\n")
    assert run(3, 1, tmp_path) == run(3, 1)
