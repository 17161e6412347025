"""Plays a newcomer's first hour from scratch on several Pythons: installs a wheel, starts brokers, runs tests, checks
types.

    python -m bench.first_hour                    # 3.11, 3.12 and 3.13, as far as they are on this machine
    python -m bench.first_hour --write docs/benchmarks/first-hour.md

Each Python gets a fresh environment outside the repository. The files of tests/newcomer are copied there: of this
repository they import only the installed package.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
NEWCOMER: Final = ROOT / "tests" / "newcomer"
CONSTRAINTS: Final = ROOT / ".ci" / "constraints.txt"
PYTHONS: Final = ("3.11", "3.12", "3.13")
FOREIGN: Final = ("aiokafka", "confluent-kafka", "kafka-python", "lz4", "python-snappy", "zstandard")
TOOLS: Final = ("mypy", "pytest", "pytest-timeout")
INSTALL_SECONDS_MAX: Final = 600
RUN_SECONDS_MAX: Final = 300
COLUMNAR: Final = """
import asyncio, pyarrow
from strandline.client import Consumer, Producer
from strandline.testing import broker

async def main():
    async with broker() as b, Producer(bootstrap_servers=b.bootstrap) as producer:
        await producer.send_table("rows", pyarrow.table({"value": [b"1", b"2"]}))
        await producer.flush()
        settings = {"bootstrap_servers": b.bootstrap, "group_id": "g", "auto_offset_reset": "earliest"}
        async with Consumer("rows", **settings) as consumer:
            print((await consumer.poll_table(20.0)).num_rows)

asyncio.run(main())
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstHour:
    """The figures of one Python."""

    python: str
    install_s: float
    installed_mb: float
    packages: int
    embedded_ms: float
    process_s: float
    cluster_s: float
    tests: str
    types: str
    tables: str


def interpreter_of(version: str) -> str | None:
    """Returns pyenv's Python of this version, or the one on PATH."""
    root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    found = sorted(glob.glob(f"{root}/versions/{version}.*/bin/python"))
    if found:
        return found[-1]
    return shutil.which(f"python{version}")


def build_wheel(into: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(into), str(ROOT)],
        check=True,
        timeout=INSTALL_SECONDS_MAX,
    )
    return next(into.glob("strandline-*.whl"))


def try_out(python: str, wheel: Path, home: Path) -> FirstHour:
    """Runs the trial on one Python. Raises CalledProcessError, with the output, if a step fails."""
    subprocess.run([python, "-m", "venv", str(home / "venv")], check=True, timeout=INSTALL_SECONDS_MAX)
    bin_path = home / "venv" / "bin"
    site = next((home / "venv" / "lib").glob("python*")) / "site-packages"
    before_mb, before_count = _megabytes(site), _packages(site)
    began = time.monotonic()
    _install(bin_path, str(wheel))
    install_s = time.monotonic() - began
    installed_mb, packages = _megabytes(site) - before_mb, _packages(site) - before_count
    work = home / "work"
    shutil.copytree(NEWCOMER, work, ignore=shutil.ignore_patterns("__init__.py", "__pycache__"))
    starts = json.loads(_run(bin_path / "python", "starts.py", cwd=work))
    _run(bin_path / "python", "typed_client.py", cwd=work)
    _install(bin_path, *FOREIGN, *TOOLS)
    types = _run(bin_path / "mypy", "--strict", "typed_client.py", cwd=work).strip()
    tests = _run(bin_path / "python", "-m", "pytest", "-q", "test_three_clients.py", cwd=work)
    _install(bin_path, f"strandline[columnar] @ {wheel.as_uri()}")
    tables = _run(bin_path / "python", "-c", COLUMNAR, cwd=work).strip()
    assert tables == "2", tables
    return FirstHour(
        python=_run(bin_path / "python", "-V", cwd=work).split()[1],
        install_s=round(install_s, 1),
        installed_mb=round(installed_mb, 1),
        packages=packages,
        tests=tests.strip().splitlines()[-1],
        types=types,
        tables=f"{tables} rows",
        **starts,
    )


def _install(bin_path: Path, *packages: str) -> None:
    subprocess.run(
        [
            bin_path / "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "-c",
            str(CONSTRAINTS),
            *packages,
        ],
        check=True,
        timeout=INSTALL_SECONDS_MAX,
    )


def _run(*command: str | Path, cwd: Path) -> str:
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYTEST"))
    }
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
        check=False,
    )
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        done.check_returncode()
    return done.stdout


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def _packages(site: Path) -> int:
    return len(list(site.glob("*.dist-info")))


def rows_of(results: list[FirstHour]) -> str:
    """Returns the rows of a table."""
    heads = (
        "Python",
        "install",
        "size",
        "packages",
        "embedded",
        "process",
        "cluster of three",
        "20 tests",
        "mypy --strict",
    )
    lines = ["| " + " | ".join(heads) + " |", "| " + " | ".join("---" for _ in heads) + " |"]
    for each in results:
        cells = (
            each.python,
            f"{each.install_s} s",
            f"{each.installed_mb} MB",
            str(each.packages),
            f"{each.embedded_ms} ms",
            f"{each.process_s} s",
            f"{each.cluster_s} s",
            each.tests,
            each.types,
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="A newcomer's first hour, from scratch, on several Pythons.")
    parser.add_argument("pythons", nargs="*", default=PYTHONS, help="versions (default: 3.11 3.12 3.13)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the table into this page")
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory(prefix="strandline-first-hour-") as home:
        wheel = build_wheel(Path(home))
        for version in options.pythons:
            python = interpreter_of(version)
            if python is None:
                print(f"Python {version} is not on this machine: it is left out")
                continue
            place = Path(home) / version
            place.mkdir()
            results.append(try_out(python, wheel, place))
            print(rows_of(results[-1:]).splitlines()[-1], flush=True)
    if options.write:
        text = options.write.read_text()
        head, _, rest = text.partition("<!-- figures -->")
        _, _, tail = rest.partition("<!-- end -->")
        options.write.write_text(f"{head}<!-- figures -->\n{rows_of(results)}\n<!-- end -->{tail}")
    return 0 if results else 1


if __name__ == "__main__":
    sys.exit(main())
