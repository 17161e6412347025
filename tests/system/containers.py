"""Reads examples/container, and runs its command lines as processes of this machine.

A container's host name becomes a loopback address of its own, and its ports become free ones: the file's text is
changed by nothing else.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from strandline.testing.clusters import free_ports
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "container"
PYTHON = "/opt/strandline/bin/python"
VOLUME = "/var/lib/strandline"
HEALTH_SECONDS_MAX = 120.0


def instructions() -> dict[str, list[str]]:
    """The instructions of the Containerfile's last stage, by name; continued lines are joined."""
    text = re.sub(r"\\\n\s*", "", (FOLDER / "Containerfile").read_text())
    found: dict[str, list[str]] = {}
    for line in text.rpartition("\nFROM ")[2].splitlines()[1:]:
        name, _, rest = line.partition(" ")
        if name and name != "#":
            found.setdefault(name, []).append(rest.strip())
    return found


def exec_form(text: str) -> list[str]:
    """The command of an instruction, after its options."""
    found: list[str] = json.loads(text[text.index("[") :])
    return found


def services() -> dict[str, dict[str, Any]]:
    loaded: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]
    return loaded


@dataclass(slots=True, kw_only=True)
class Machine:
    """This machine in place of the containers: `hosts` are their names with loopback addresses."""

    hosts: Mapping[str, str]
    ports: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        inner = ("9092", "9093", "19092", "9404")
        # The published ports of a host are those of its container here: nobody forwards them.
        self.ports = dict(zip(inner, map(str, free_ports(len(inner))), strict=True))

    def here(self, text: str, host: str, directory: Path) -> str:
        """A text of the files with the addresses and paths of this machine; `host` is the container's name."""
        own = self.hosts[host]
        text = text.replace("0.0.0.0", own).replace("localhost:9404", f"{own}:9404")
        text = re.sub(r"EXTERNAL://localhost:\d+", f"EXTERNAL://{own}:9092", text)
        for name, address in self.hosts.items():
            text = re.sub(rf"\b{name}:", f"{address}:", text)
        text = re.sub(r"(?<=:)(\d{4,5})\b", lambda match: self.ports.get(match[1], match[1]), text)
        text = self.ports["9404"] if text == "9404" else text
        text = text.replace("/opt/strandline/entrypoint.py", str(FOLDER / "entrypoint.py"))
        return text.replace(PYTHON, sys.executable).replace(VOLUME, str(directory))

    def address(self, host: str, port: str) -> str:
        return f"{self.hosts[host]}:{self.ports[port]}"


class Container:
    """A process that runs what a container would run."""

    def __init__(
        self, command: Sequence[str], health: Sequence[str], environment: Mapping[str, str], directory: Path
    ) -> None:
        self._command, self._health, self._directory = command, health, directory
        config = {"STRANDLINE_SERVER_PROPERTIES": str(directory / "server.properties")}
        self._environment = {**os.environ, **config, **environment}
        self.start()

    def start(self) -> None:
        with (self._directory / "output").open("a") as output:
            self._process = subprocess.Popen(
                self._command, env=self._environment, stdout=output, stderr=output, cwd=self._directory
            )

    @property
    def output(self) -> str:
        return (self._directory / "output").read_text()

    @property
    def is_healthy(self) -> bool:
        done = subprocess.run(self._health, capture_output=True, timeout=60, check=False)
        return done.returncode == 0

    def until_healthy(self) -> None:
        def is_ready() -> bool:
            status = self._process.poll()
            if status is not None:
                raise RuntimeError(f"it ended with status {status}: {self.output}")
            return self.is_healthy

        eventually(is_ready, HEALTH_SECONDS_MAX, lambda: self.output)

    def stop(self) -> int:
        """Ends it by the engine's signal; the exit status."""
        self._process.terminate()
        return self._process.wait(60)

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(60)
