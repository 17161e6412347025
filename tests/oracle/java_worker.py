"""A Java program of the tests that answers JSON lines: one JVM start instead of one for every question.

A program reads one JSON object per line on standard input, answers each with one line on standard output and
ends at end of file. Every question has a time limit; a program that misses it is killed, and the next
question starts a new one.
"""

from __future__ import annotations

import json
import queue
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

JVM_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
LOG_TAIL_CHARACTERS = 4000
CLOSE_TIMEOUT_S = 10.0


class JavaWorkerError(Exception):
    """The program died or missed its time limit; the message ends with what it wrote to standard error."""


class LineWorker:
    """A program in any language; its first question starts it."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[str | None] = queue.Queue()
        self._errors: IO[str] | None = None
        self._reader: threading.Thread | None = None

    def call(self, question: Mapping[str, Any], *, timeout_s: float) -> dict[str, Any]:
        process = self._running()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            line = self._answers.get(timeout=timeout_s)
        except (queue.Empty, BrokenPipeError) as error:
            raise JavaWorkerError(f"no answer within {timeout_s} s: {self._end_and_explain()}") from error
        if line is None:
            raise JavaWorkerError(f"the program ended: {self._end_and_explain()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        if self._process is None:
            return
        self._close_question_pipe()
        try:
            self._process.wait(CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._forget()

    def kill(self) -> None:
        """As `kill -9` does; the next question starts a new one."""
        if self._process is not None:
            self._process.kill()
            self._close_question_pipe()
            self._forget()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 (lives as long as the program)
            self._answers = queue.Queue()
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                encoding="utf-8",
            )
            self._reader = threading.Thread(
                target=_read_lines, args=(self._process.stdout, self._answers), daemon=True
            )
            self._reader.start()
        return self._process

    def _end_and_explain(self) -> str:
        assert self._process is not None
        assert self._errors is not None
        self._process.kill()
        self._process.wait()
        self._errors.seek(0)
        said = self._errors.read()[-LOG_TAIL_CHARACTERS:]
        self._close_question_pipe()
        self._forget()
        return said

    def _close_question_pipe(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def _forget(self) -> None:
        assert self._process is not None
        assert self._reader is not None
        assert self._errors is not None
        self._process.wait()
        self._reader.join()
        self._errors.close()
        self._process = self._reader = self._errors = None


class JavaWorker(LineWorker):
    def __init__(self, *, java: Path, jars: Path, source: Path) -> None:
        super().__init__(
            [
                *(str(java), *JVM_OPTIONS, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"),
                *("-cp", f"{jars}/*", str(source)),
            ]
        )


def _read_lines(stream: IO[str], lines: queue.Queue[str | None]) -> None:
    """Until the program closes its output; None tells the asker that nothing will come any more."""
    with stream:
        for line in stream:
            lines.put(line)
    lines.put(None)
