"""The program under test: what is kept of what it prints."""

from __future__ import annotations

import shlex
import sys
import time

from strandline.testing.torture.program import UserProgram


def ended(script: str) -> UserProgram:
    program = UserProgram(shlex.join([sys.executable, "-c", script]), {})
    program.start()
    deadline = time.monotonic() + 60
    while not program.exit_codes:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    program.close()
    return program


def test_record_that_a_program_repeats_for_ever_is_kept_twice() -> None:
    program = ended("""for _ in range(5000): print('{"topic": "t", "partition": 0, "offset": 1}')""")
    assert [each.place for each in program.said] == [("t", 0, 1), ("t", 0, 1)]


def test_program_that_ended_without_an_error_has_finished() -> None:
    program = ended("print('nothing to do')")
    assert program.has_finished
    assert program.ended_s > 0
    assert not program.notes
