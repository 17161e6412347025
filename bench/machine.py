"""Describes the machine of a run, and puts it into the same state before each step."""

from __future__ import annotations

import compileall
import os
import platform
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import confluent_kafka

from tests.oracle.fetch import KAFKA_VERSION

SOURCE = Path(__file__).parents[1] / "src"

_CHUNK = bytes(1024 * 1024)
# Beside the records themselves: indexes, and what the client allocates.
_ROOM_BYTES = 192 * 1024 * 1024


def facts(directory: Path, java: Path) -> dict[str, str | int | float]:
    """Returns the facts by which a reader judges the figures beside other programs, without names of hosts or
    places."""
    return {
        **plain_facts(directory),
        "librdkafka": confluent_kafka.libversion()[0],
        "confluent_kafka": version("confluent-kafka"),
        "java": _java_version(java),
        "kafka": KAFKA_VERSION,
    }


def plain_facts(directory: Path) -> dict[str, str | int | float]:
    """Returns the facts for a run of Strandline alone, without names of hosts or places."""
    memory = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count() or 0,
        "memory_gib": round(int(memory["MemTotal"].split()[0]) / 1024 / 1024, 1),
        "kernel": platform.release(),
        "filesystem": _filesystem(directory),
        "virtual": "hypervisor" in _cpu_flags(),
        "python": platform.python_version(),
        "uvloop": version("uvloop"),
    }


def prime_page_cache(directory: Path, size: int) -> None:
    """Writes and frees as much page cache as the step will fill.

    A virtual machine gives memory that is free for some seconds back to its host, and taking it again costs a fault
    for each page, four times the write itself. Without this the peer that happens to get fresh pages looks slow.
    """
    scratch = directory / "scratch"
    with scratch.open("wb", buffering=0) as file:
        for _ in range((size + _ROOM_BYTES) // len(_CHUNK)):
            file.write(_CHUNK)
    scratch.unlink()


def freeze_source(root: Path) -> None:
    """Has every process that is started from now on use a copy of Strandline, so that a run measures one state of
    it."""
    copy = root / "src"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(copy, quiet=1)
    os.environ["PYTHONPATH"] = str(copy)


def revision() -> str:
    """Returns the commit that was measured, with `+` if the tree had changes."""
    try:
        commit, changes = (
            _git("rev-parse", "--short", "HEAD"),
            _git("status", "--porcelain", "--", str(SOURCE)),
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit + ("+" if changes else "")


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, check=True).stdout.strip()


def _cpu_model() -> str:
    return _cpuinfo("model name") or platform.processor() or "unknown"


def _cpu_flags() -> list[str]:
    return _cpuinfo("flags").split()


def _cpuinfo(key: str) -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return ""


def _filesystem(directory: Path) -> str:
    """Returns the type of the file system that holds the directory."""
    mounted = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    above = [(len(place), kind) for place, kind in mounted if directory.resolve().is_relative_to(place)]
    return max(above)[1]


def _java_version(java: Path) -> str:
    done = subprocess.run([str(java), "-version"], capture_output=True, text=True, check=False)
    return done.stderr.splitlines()[0] if done.stderr else "unknown"


if sys.platform != "linux":
    raise SystemExit("the benchmark reads /proc: it needs Linux")
