"""Code that reaches for the real world inside a simulation is refused at once."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from strandline.node.clock import RealClock
from strandline.node.disk import RealDisk
from strandline.node.network import TcpNetwork
from strandline.node.random import RealRandom
from strandline.node.workers import ThreadWorkers
from strandline.sim.engine.seal import SealBroken
from strandline.sim.world import World

# Each looks its function up when it is called: that is what can be sealed.
ESCAPES: dict[str, Callable[[], object]] = {
    "wall clock": lambda: time.time() + 1,
    "time in nanoseconds": lambda: time.time_ns() + 1,
    "monotonic clock": lambda: time.monotonic() + 1,
    "sleep": lambda: time.sleep(0),
    "socket": lambda: socket.socket(socket.AF_INET),
    "thread": lambda: threading.Thread(target=print).start(),
    "process": lambda: subprocess.run(["true"], check=True),
    "chance": lambda: random.randrange(5),
    "uuid": lambda: uuid.uuid4().bytes,
    "system chance": lambda: os.urandom(1),
    "file": lambda: open("/dev/null", "rb"),  # noqa: SIM115
    "file descriptor": lambda: os.open("/dev/null", os.O_RDONLY),
    "executor": lambda: asyncio.get_running_loop().run_in_executor(None, print),
    "to_thread": lambda: asyncio.get_running_loop().create_task(asyncio.to_thread(print)),
    "reader": lambda: asyncio.get_running_loop().add_reader(0, print),
    "server": lambda: asyncio.get_running_loop().create_server(asyncio.Protocol, "localhost", 0),
    "connection": lambda: asyncio.get_running_loop().create_connection(asyncio.Protocol, "localhost", 1),
    "signal": lambda: asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, print),
    "real clock": lambda: RealClock().wall_ms(),
    "real disk": lambda: RealDisk().open("/dev/null"),
    "real disk's read": lambda: RealDisk().read("/dev/null"),
    "real random": lambda: RealRandom().uuid(),
    "real network": lambda: asyncio.get_running_loop().create_task(
        TcpNetwork().listen("localhost", 0, object)
    ),
    "real workers": lambda: ThreadWorkers().run(print),
}


@pytest.mark.parametrize("way", ESCAPES)
def test_the_real_world_is_out_of_reach(way: str) -> None:
    async def scenario() -> None:
        attempt = ESCAPES[way]()
        if isinstance(attempt, asyncio.Task):
            await attempt

    with World(1) as world, pytest.raises(SealBroken):
        world.run(scenario())


def test_the_real_world_is_back_after_a_run_also_one_that_failed(tmp_path: Path) -> None:
    async def scenario() -> None:
        raise ValueError

    with World(1) as world, pytest.raises(ValueError):
        world.run(scenario())
    assert time.monotonic() > 0
    socket.socket().close()
    (tmp_path / "file").write_bytes(os.urandom(5))


def test_another_thread_cannot_call_into_the_simulation() -> None:
    raised: list[type[BaseException]] = []

    def call() -> None:
        try:
            world.loop.call_soon_threadsafe(print)
        except SealBroken as error:
            raised.append(type(error))

    with World(1) as world:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    assert raised == [SealBroken]


def test_other_threads_of_the_process_go_on_in_the_real_world() -> None:
    """A blocking client of another test may live on its own loop: a simulation is none of its business."""
    seen: list[float] = []
    asked, responded = threading.Event(), threading.Event()

    def live() -> None:
        asked.wait(60)
        seen.append(time.time())
        with socket.socket() as opened:
            seen.append(float(isinstance(opened, socket.socket)))
        responded.set()

    thread = threading.Thread(target=live)
    thread.start()

    async def scenario() -> None:
        asked.set()
        responded.wait(60)

    with World(1) as world:
        world.run(scenario())
    thread.join()
    assert len(seen) == 2
    assert seen[1] == 1.0
