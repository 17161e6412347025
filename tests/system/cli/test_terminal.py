"""Commands on a terminal of their own, as a person sees them: colour, pages, bars, questions and completion."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from strandline.client import NewTopic
from strandline.client.sync import Admin
from tests.oracle.fetch import FISH, ZSH
from tests.oracle.require import require

from .conftest import Ran

WAIT_S = 30.0
TOPICS = 60


class Terminal:
    """A command whose input and output are a terminal of 24 lines."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        own, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self._own = own
        self.shown = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "strandline", *arguments],
            stdin=its,
            stdout=its,
            stderr=its,
            env={**os.environ, "TERM": "xterm", **environment},
            start_new_session=True,
        )
        os.close(its)

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + WAIT_S
        while text not in self.shown:
            assert time.monotonic() < deadline, self.shown
            assert self._read(), self.shown

    def type(self, text: str) -> None:
        os.write(self._own, text.encode())

    def end(self) -> int:
        """Waits for the end of the output, and returns the exit code."""
        while self._read():
            pass
        code = self.process.wait(WAIT_S)
        os.close(self._own)
        return code

    def _read(self) -> bool:
        if not select.select([self._own], [], [], WAIT_S)[0]:
            raise AssertionError(f"nothing came for {WAIT_S:g} s after {self.shown!r}")
        try:
            data = os.read(self._own, 65536)
        except OSError:
            return False  # it has ended
        self.shown += data.decode(errors="replace")
        return bool(data)


Started = Callable[..., Terminal]


@pytest.fixture
def started() -> Iterator[Started]:
    """Starts commands, which end with the test."""
    terminals: list[Terminal] = []

    def start(*arguments: str, **environment: str) -> Terminal:
        terminals.append(Terminal(*arguments, **environment))
        return terminals[-1]

    yield start
    for each in terminals:
        each.process.kill()
        each.process.wait(WAIT_S)


@pytest.fixture(scope="module")
def topics(bootstrap: str) -> list[str]:
    names = [f"paged-{number:02}" for number in range(TOPICS)]
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(name, 1) for name in names])
    return names


def test_more_rows_than_the_screen_has_go_through_the_pager(
    topics: Sequence[str], started: Started, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    terminal = started("topics", "list", PAGER=f"tee {seen} > /dev/null")
    assert terminal.end() == 0
    assert topics[-1] not in terminal.shown
    lines = seen.read_text().splitlines()
    assert "\x1b[1mTOPIC" in lines[0], "titles are bold"
    assert [name for name in topics if not any(line.startswith(name) for line in lines)] == []


def test_a_pager_that_ends_early_is_no_error(topics: Sequence[str], started: Started) -> None:
    terminal = started("topics", "list", PAGER="head -n 2")
    assert terminal.end() == 0
    assert "Traceback" not in terminal.shown
    assert topics[-1] not in terminal.shown


def test_few_rows_are_printed_and_no_colour_is_no_colour(topics: Sequence[str], started: Started) -> None:
    terminal = started("topics", "list", f"{topics[0]}*", PAGER="false", NO_COLOR="1")
    assert terminal.end() == 0
    assert topics[0] in terminal.shown
    assert "\x1b[" not in terminal.shown


def test_a_bar_grows_and_is_gone_at_the_end(topics: Sequence[str], started: Started) -> None:
    terminal = started("perf", "produce", topics[0], "--records", "20000", "--rate", "10000")
    terminal.wait_for("%")
    assert terminal.end() == 0
    bars = [part for part in terminal.shown.split("\r") if part.startswith("[")]
    filled = [part.count("#") for part in bars]
    assert filled == sorted(filled)
    assert filled[-1] > filled[0]
    assert "\r\x1b[K" in terminal.shown, "the line is cleared"


def test_a_deletion_is_confirmed_and_no_cancels_it(started: Started, bootstrap: str) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic("asked", 1)])
        for reply, is_there in (("n", True), ("y", False)):
            terminal = started("topics", "delete", "asked")
            terminal.wait_for("?")
            terminal.type(f"{reply}\n")
            code = terminal.end()
            assert (code == 0) is not is_there
            assert ("asked" in admin.list_topics()) is is_there


# Each shell is given the script and a line whose last word is unfinished, and prints the words that it would show.
SHELLS = {
    "bash": """{script}
COMP_WORDS=({words}); COMP_CWORD={last}; _strandline
printf "%s\\n" "${{COMPREPLY[@]}}"
""",
    "zsh": """compdef() {{ }}
compadd() {{ print -l -- "${{(@P)argv[-1]}}" }}
{script}
words=({words}); (( CURRENT = {last} + 1 )); _strandline
""",
    "fish": """{script}
complete -C "{line}"
""",
}
ALIASES = {
    "bash": 'strandline() {{ "{python}" -m strandline "$@"; }}',
    "zsh": 'strandline() {{ "{python}" -m strandline "$@" }}',
    "fish": "function strandline; {python} -m strandline $argv; end",
}


def completed(shell: str, *line: str) -> list[str]:
    """Returns the words that a shell shows for a line whose last word is unfinished."""
    program = {"zsh": ZSH, "fish": FISH}.get(shell)
    script = subprocess.run(
        [sys.executable, "-m", "strandline", "completion", shell],
        capture_output=True,
        text=True,
        check=True,
        timeout=WAIT_S,
    ).stdout
    words = ("strandline", *line)
    test = SHELLS[shell].format(
        script=script, words=" ".join(f"'{word}'" for word in words), last=len(line), line=" ".join(words)
    )
    ran = subprocess.run(
        [
            shell if program is None else str(require(program)),
            *(["-N"] if shell == "fish" else []),
            "-c",
            f"{ALIASES[shell].format(python=sys.executable)}\n{test}",
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=WAIT_S,
    )
    return ran.stdout.split()


@pytest.mark.oracle
@pytest.mark.parametrize("shell", SHELLS)
def test_shells_complete_commands_options_topics_and_groups(
    shell: str, topics: Sequence[str], run: Callable[..., Ran]
) -> None:
    assert completed(shell, "topi") == ["topics"]
    assert "describe" in completed(shell, "topics", "")
    assert "--partitions" in completed(shell, "topics", "create", "--p")
    assert completed(shell, "topics", "describe", "paged-1") == [f"paged-1{digit}" for digit in range(10)]
    consumed = run("consume", topics[0], "--group", "completed-group", "--exit")
    assert consumed.code == 0
    assert completed(shell, "groups", "describe", "complet") == ["completed-group"]


def test_a_cluster_that_is_away_completes_nothing_and_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRANDLINE_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    began = time.monotonic()
    assert completed("bash", "topics", "describe", "paged-1") == []
    assert time.monotonic() - began < WAIT_S / 2
