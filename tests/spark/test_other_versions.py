"""The source, the sinks and pipelines with other versions of PySpark than the one that `make test` has.

Each gets an environment of its own, into which pip installs what the constraints of CI name, but for PySpark, and runs
tests of this folder there. In `make soak`: an environment takes minutes to install and more than a gigabyte.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The newest of each line, beside 4.3.0 of the constraints; docs/guides/spark-reference.md has their table.
VERSIONS = ("4.0.5", "4.1.4", "4.2.1")
# What is tested with every version, and what needs the limits of micro-batches that 4.2 has brought.
EVERY = (
    "test_every_version",
    "test_exactly_once",
    "test_row_partitioning",
    "test_reading",
    "test_records_of_every_shape",
    "test_time_patterns",
    "test_writing",
)
WITH_LIMITS = ("test_shuffle_free_write", "test_pipeline", "test_pipeline_retries", "test_streams")
# What each test in these looks for itself, whether it can run with the version.
WHERE_POSSIBLE = ("test_declarative", "test_pipeline_lakes")
TOOLS = ("fastavro", "hypothesis", "pytest", "pytest-timeout", "pytest-xdist")
INSTALL_SECONDS_MAX = 1800
RUN_SECONDS_MAX = 2400

pytestmark = [
    pytest.mark.skipif(os.environ.get("STRANDLINE_SOAK") != "1", reason="long: set STRANDLINE_SOAK=1"),
    pytest.mark.timeout(INSTALL_SECONDS_MAX + RUN_SECONDS_MAX + 60),
]


def constraints(version: str) -> str:
    """Returns the pinned packages of CI with another PySpark, which brings its own py4j."""
    given = (ROOT / ".ci" / "constraints.txt").read_text().splitlines()
    kept = [line for line in given if line.partition("==")[0] not in ("pyspark", "py4j")]
    return "\n".join([*kept, f"pyspark=={version}", ""])


@pytest.fixture
def python(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A version, and the Python of an environment that has it."""
    version = request.param
    limits, home = tmp_path / "constraints.txt", tmp_path / "environment"
    limits.write_text(constraints(version))
    subprocess.run([sys.executable, "-m", "venv", home], check=True, timeout=INSTALL_SECONDS_MAX)
    command = [home / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "-c", limits]
    wanted = [
        "-e",
        f"{ROOT}[spark]",
        *TOOLS,
        *(() if version.startswith("4.0.") else ("pyspark[pipelines]",)),
    ]
    subprocess.run([*command, *wanted], check=True, timeout=INSTALL_SECONDS_MAX)
    yield version, home / "bin" / "python"
    shutil.rmtree(home)


@pytest.mark.parametrize("python", VERSIONS, indirect=True)
def test_the_table_of_versions_is_true(python: tuple[str, Path]) -> None:
    version, executable = python
    has_limits = tuple(map(int, version.split("."))) >= (4, 2)
    names = [*EVERY, *(WITH_LIMITS if has_limits else ()), *WHERE_POSSIBLE]
    files = [str(Path(__file__).with_name(f"{name}.py")) for name in names]
    # PySpark 4.0 leaves sockets to the garbage collector, which pytest would count as failures.
    quiet = ("-W", "ignore::pytest.PytestUnraisableExceptionWarning")
    command = [executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *quiet, *files]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK"))
    }
    ran = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
        check=False,
        cwd=ROOT,
        env=environment,
    )
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    found = subprocess.run(
        [executable, "-c", "import pyspark; print(pyspark.__version__)"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd="/",
    )
    assert found.stdout.strip() == version
