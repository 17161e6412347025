"""The program that is tested: a command that prints one JSON line for each record that it calls done.

A consumer prints {"topic": …, "partition": …, "offset": …} when it has dealt with a record; a producer {"id": …} when
its record is acknowledged. Other lines are for people. A program that ends with an error is started again, as a
supervisor would do it.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

STOP_SECONDS: Final = 5.0
STARTS_MAX: Final = 6
_PAUSE_SECONDS: Final = 0.2
_TAIL_CHARACTERS: Final = 600
_REPETITIONS_MAX: Final = 2  # that are kept: the second one says when a record was done again


@dataclass(frozen=True, slots=True)
class Said:
    """A line of the program: a record that is done, or an id that is acknowledged, and when that was said."""

    at_s: float
    place: tuple[str, int, int] | None = None
    record_id: str | None = None


class UserProgram:
    """Starts the command, reads what it prints, and starts it again when it ends with an error."""

    def __init__(self, command: str, variables: Mapping[str, str]) -> None:
        """`{bootstrap}`, `{topic}`, `{group}`, `{records}` and `{transactional_id}` in the command are filled in, and
        the environment has them as STRANDLINE_BOOTSTRAP and so on."""
        filled = command
        for name, value in variables.items():
            filled = filled.replace(f"{{{name}}}", value)
        self._command = shlex.split(filled)
        self._environment = {
            **os.environ,
            "PYTHONUNBUFFERED": "1",
            **{f"STRANDLINE_{name.upper()}": value for name, value in variables.items()},
        }
        self.said: list[Said] = []  # a record that it repeats for ever is in it twice
        self._repetitions: Counter[tuple[object, object]] = Counter()
        self.notes: list[str] = []  # what happened to the program itself
        self.starts = 0
        self.exit_codes: list[int] = []
        self.ended_s = 0.0  # when it ended for the last time
        self._began = time.monotonic()
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # for as long as the program is
        self._reader: threading.Thread | None = None
        self._is_wanted = False
        self._lock = threading.Lock()

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._began

    @property
    def is_running(self) -> bool:
        process = self._process
        return process is not None and process.poll() is None

    @property
    def has_finished(self) -> bool:
        """True if it ended by itself and without an error."""
        return not self.is_running and self.exit_codes[-1:] == [0]

    @property
    def has_given_up(self) -> bool:
        """True if it has ended with an error as often as it was started."""
        return self.starts >= STARTS_MAX and not self.is_running

    def start(self) -> None:
        """Raises OSError if there is no such command."""
        self._is_wanted = True
        self._launch()

    def _launch(self) -> None:
        with self._lock:
            self.starts += 1
            self._process = subprocess.Popen(
                self._command,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=self._environment,
                start_new_session=True,
                cwd=Path.cwd(),
            )
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                said = parse_line(line, self.elapsed_s)
                if said is not None:
                    self._hear(said)
        code = process.wait()
        self.exit_codes.append(code)
        self.ended_s = self.elapsed_s
        if self._is_wanted and code != 0 and process is self._process:
            self.notes.append(f"{self.elapsed_s:.1f} s: the program ended with {code}{self._tail()}")
            if self.starts < STARTS_MAX:
                time.sleep(_PAUSE_SECONDS)
                if self._is_wanted:
                    self._launch()

    def _hear(self, said: Said) -> None:
        record = (said.place, said.record_id)
        self._repetitions[record] += 1
        if self._repetitions[record] <= _REPETITIONS_MAX:
            self.said.append(said)

    def _tail(self) -> str:
        self._errors.flush()
        size = os.fstat(self._errors.fileno()).st_size
        data = os.pread(self._errors.fileno(), _TAIL_CHARACTERS, max(0, size - _TAIL_CHARACTERS))
        text = data.decode(errors="replace").strip()
        return f": {text.splitlines()[-1]}" if text else ""

    def kill(self) -> None:
        """Ends the program as `kill -9` does; `start` starts it again."""
        self._is_wanted = False
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        """Sends SIGTERM; if the program does not end, it is killed, and a note says so."""
        self._is_wanted = False
        process = self._process
        if process is None or process.poll() is not None:
            return
        self.resume()
        self._signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.notes.append(f"the program did not end within {STOP_SECONDS:g} s of SIGTERM, and was killed")
            self.kill()

    def close(self) -> None:
        """Ends the program, and closes its files."""
        self.stop()
        reader = self._reader
        if reader is not None:
            reader.join(STOP_SECONDS)
        self._errors.close()

    def _signal(self, number: signal.Signals) -> None:
        """Sends a signal to the program and to the processes that it has started."""
        process = self._process
        if process is not None and process.poll() is None:
            os.killpg(process.pid, number)


def parse_line(line: bytes, at_s: float) -> Said | None:
    """Returns the record that a line reports; None for a line that is for people."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        value = json.loads(line)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    record_id = str(value["id"]) if "id" in value else None
    try:
        place = str(value["topic"]), int(value["partition"]), int(value["offset"])
    except (KeyError, TypeError, ValueError):
        return None if record_id is None else Said(at_s, record_id=record_id)
    return Said(at_s, place=place, record_id=record_id)
