"""Runs the fences of one page in order; they share a directory, names, a broker and what stays.

`python -m tests.docs.page_run docs/guides/client.md DIRECTORY` runs one by hand, in a new directory.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import yaml

from strandline.node.network import free_ports_from
from strandline.testing import running_broker, running_registry
from strandline.testing.clusters import free_ports
from tests.docs.fences import Fence, fences_of
from tests.docs.output import contains, mismatch

ROOT = Path(__file__).parents[2]
COMMAND_SECONDS_MAX = 90
# Ports that pages name; a run has others in their place, so that pages can be tried side by side.
NODE_PORTS = (9092, 9093, 9094)
METRICS_PORTS = (9404, 9405, 9406)
PORTS = (8081, 9099)
_ADDRESS = re.compile(r"(?P<before>(?:localhost|127\.0\.0\.1):|port[ =])(?P<port>\d{4,5})\b")
_UP = re.compile(r"\bstrandline up\b(?!.*--port)")
_REGISTRY = re.compile(r"\bstrandline registry\b(?!.*--port)")
# Commands that ask a registry, by default that on port 8081.
_ASKS_REGISTRY = re.compile(r"\bstrandline (?:schemas \w+|produce(?=[^|\n]*--schema))")
_PIP = re.compile(r"^pip install .*$", re.MULTILINE)


class PageRun:
    """A run of one page in a directory. The page's own `strandline up` is its broker; where it has none and names
    localhost:9092, a broker is started for it."""

    def __init__(self, page: Path, directory: Path, **names: Any) -> None:
        self._page = page
        self._directory = directory
        self._names: dict[str, Any] = {"__name__": "__main__", **names}
        self._printed = ""
        self._fences = fences_of(page)
        nodes, metrics, *others = free_ports(2 + len(PORTS))
        found = (*free_ports_from(nodes, 3), *free_ports_from(metrics, 3), *others)
        self._ports = dict(zip((*NODE_PORTS, *METRICS_PORTS, *PORTS), found, strict=True))
        self._stack = contextlib.ExitStack()

    def run(self) -> None:
        with self._stack:
            self._loop = self._stack.enter_context(asyncio.Runner())
            self._prepare()
            for fence in self._fences:
                try:
                    self._run(fence)
                except Exception as error:
                    error.add_note(f"at {self._page}:{fence.line}")
                    raise

    def _prepare(self) -> None:
        (self._directory / "examples").symlink_to(ROOT / "examples")
        ran = "".join(fence.text for fence in self._fences if fence.directive not in ("not run", "proved by"))
        stays = "".join(fence.text for fence in self._fences if fence.directive == "stays")
        if not _UP.search(stays) and re.search(r":9092|strandline ", ran):
            broker = self._stack.enter_context(running_broker())
            self._ports[9092] = int(broker.bootstrap.rpartition(":")[2])
            if ":8081" in ran and not _REGISTRY.search(stays):
                log = self._directory / "registry.log"
                registry = self._stack.enter_context(running_registry(broker.bootstrap, log))
                self._ports[8081] = int(registry.url.rpartition(":")[2])

    # Fences

    def _run(self, fence: Fence) -> None:
        match fence.directive, fence.language:
            case "not run" | "proved by", _:
                return
            case "output", _:
                self._compare(fence.text, self._printed)
            case "file", _:
                path = self._directory / fence.argument
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(self._here(fence.text))
            case "stays", _:
                self._start(fence)
            case _, "python":
                self._python(fence)
            case _, "console":
                self._console(fence)
            case _, "sh":
                status, self._printed = self._shell(fence.text)
                assert status == int(fence.argument or 0), self._printed
            case _, "json":
                json.loads(fence.text)
            case _, "yaml":
                yaml.safe_load(fence.text)
            case _, "toml":
                tomllib.loads(fence.text)
            case _, "text":
                return
            case _:
                raise AssertionError(
                    f"nobody knows how to run {fence.language or 'a fence without a language'}"
                )

    def _python(self, fence: Fence) -> None:
        """Runs the code in this process, with `await` outside of functions on the loop of the page."""
        source = "\n" * (fence.line - 1) + self._here(fence.text)
        code = compile(source, str(self._page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        printed = io.StringIO()
        with contextlib.chdir(self._directory), contextlib.redirect_stdout(printed):
            if code.co_flags & inspect.CO_COROUTINE:
                self._loop.run(eval(code, self._names))
            else:
                exec(code, self._names)
        self._printed = printed.getvalue()

    def _console(self, fence: Fence) -> None:
        commands = fence.commands
        assert commands, "a console has lines that begin with $"
        for number, (line, shown) in enumerate(commands):
            status, self._printed = self._shell(line)
            if shown.strip():
                self._compare(shown, self._printed, line)
            expected = int(fence.argument) if fence.argument and number == len(commands) - 1 else 0
            assert status == expected, f"{line}: exit status {status}\n{self._printed}"

    def _compare(self, shown: str, printed: str, command: str = "") -> None:
        difference = mismatch(shown, self._there(printed))
        assert difference is None, f"{command}\n{difference}"

    # Commands

    def _shell(self, text: str) -> tuple[int, str]:
        text = _PIP.sub(lambda match: _checked_install(match.group(0)), text)
        done = subprocess.run(
            ["bash", "-ec", self._here(text)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=COMMAND_SECONDS_MAX,
            cwd=self._directory,
            env=self._environment(),
            check=False,
        )
        return done.returncode, done.stdout

    def _start(self, fence: Fence) -> None:
        """Starts a command that stays, and waits until it has printed what the page shows."""
        ((line, shown),) = fence.commands if fence.language == "console" else [(fence.text, "")]
        log = self._directory / f"stays-{fence.line}.log"
        with log.open("w") as sink:
            process = subprocess.Popen(
                ["bash", "-ec", f"exec {self._here(line)}"],
                stdout=sink,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=self._directory,
                env=self._environment(),
                start_new_session=True,
            )
        self._stack.callback(_end, process)
        deadline = time.monotonic() + COMMAND_SECONDS_MAX
        while not contains(shown, printed := self._there(log.read_text())):
            assert process.poll() is None, f"{line}: exit status {process.poll()}\n{printed}"
            assert time.monotonic() < deadline, mismatch(shown, printed)
            time.sleep(0.05)

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "STRANDLINE_BOOTSTRAP_SERVERS": f"localhost:{self._ports[9092]}",
            "STRANDLINE_CONFIG": str(self._directory / "contexts.json"),
            "COLUMNS": "120",
        }

    # Addresses

    def _here(self, text: str) -> str:
        """Returns the text with the ports of this run."""
        ports = f"--port {self._ports[9092]} --registry-port {self._ports[8081]} --metrics-port {self._ports[9404]}"
        text = _UP.sub(f"strandline up {ports}", text)
        text = _ASKS_REGISTRY.sub(rf"\g<0> --registry http://localhost:{self._ports[8081]}", text)
        text = _REGISTRY.sub(f"strandline registry --port {self._ports[8081]}", text)
        return _ADDRESS.sub(
            lambda m: m["before"] + str(self._ports.get(int(m["port"]), m["port"])),
            text,
        )

    def _there(self, text: str) -> str:
        """Returns the text with the ports and the directory that a page names."""
        pages = {str(here): str(there) for there, here in self._ports.items()}
        text = _ADDRESS.sub(lambda m: m["before"] + pages.get(m["port"], m["port"]), text)
        return text.replace(str(self._directory), "…").replace(str(ROOT), "…")


def _checked_install(line: str) -> str:
    """Checks that `pip install` names what there is; nothing is installed."""
    optional = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for extras in re.findall(r"(?:strandline|\.)\[([^\]]*)\]", line):
        missing = set(extras.split(",")) - set(optional)
        assert not missing, f"{line}: there is no extra {', '.join(sorted(missing))}"
    return f"true {line.partition('#')[0]}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a command that stays, and what it has started."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(20)


def run_page(page: Path, directory: Path, **names: Any) -> None:
    """Runs the fences of the page in a new directory, with `names` known to its Python code."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    PageRun(page, directory, **names).run()


if __name__ == "__main__":
    run_page(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
