"""The thread of blocking clients: how items get there, and that it ends before the interpreter takes itself apart."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections import deque
from typing import Any

import pytest

from strandline.node.client_thread import loop_thread

SCRIPT = """
import atexit

def look():
    print("alive" if thread._thread.is_alive() else "ended")

atexit.register(look)  # registered first, so it runs last
from strandline.node.client_thread import loop_thread

thread = loop_thread()
thread.call(lambda: None)
atexit.register(lambda: print(thread.call(lambda: "still works")))
"""


def test_the_loop_ends_with_the_interpreter_and_after_what_uses_it() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=90, check=True
    )
    assert ran.stdout.split("\n")[:2] == ["still works", "ended"]


@pytest.mark.parametrize(("sizes", "fit"), [([10] * 100, 5), ([1] * 100, 20), ([500, 1, 1], 0)])
def test_a_thread_is_ahead_of_the_loop_by_so_many_items_or_bytes_at_most(sizes: list[int], fit: int) -> None:
    """Up to 20 items or 50 bytes may wait. The item that exceeds that is in the line too."""
    may_take = threading.Event()
    taken: list[int] = []

    async def take(line: deque[Any]) -> None:
        while not may_take.is_set():
            await asyncio.sleep(0.001)
        taken.append(line.popleft()[0])

    handoff = loop_thread().handoff(take, 20, 50)
    put: list[int] = []

    def put_all() -> None:
        for number, size in enumerate(sizes):
            handoff.put(number, None, size)
            put.append(number)

    thread = threading.Thread(target=put_all)
    thread.start()
    thread.join(0.2)
    assert len(put) == fit
    may_take.set()
    thread.join(60)
    assert len(put) == len(sizes)
    reached = threading.Event()
    handoff.put_without_waiting(len(sizes), None)
    while len(taken) <= len(sizes):
        reached.wait(0.001)
    assert taken == [*range(len(sizes) + 1)]
