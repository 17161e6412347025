"""The thread of blocking clients ends before the interpreter takes itself apart."""

from __future__ import annotations

import subprocess
import sys

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
