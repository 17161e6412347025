"""How Spark's Python processes are started in sessions that are ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from strandline.spark.runtime import python_env

LOADED = """
import os
from strandline.spark.runtime.daemon import preload
preload()
names = [open(f"/proc/self/task/{each}/comm").read().strip() for each in os.listdir("/proc/self/task")]
print([name for name in names[1:] if name != "jemalloc_bg_thd"])
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="only Linux says which threads there are")
def test_modules_that_are_loaded_before_a_fork_start_no_thread_that_a_fork_would_miss() -> None:
    pytest.importorskip("pyspark")
    ran = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, timeout=300, check=True
    )
    assert ran.stdout.strip() == "[]"


def test_python_is_started_without_the_zip_files_of_spark_and_with_everything_else(tmp_path: Path) -> None:
    home = tmp_path / "py spark"
    zips = [f"{home}/python/lib/pyspark.zip", f"{home}/python/lib/py4j-src.zip", f"{home}/jars/core.jar"]
    kept = ["/somebody's own", str(tmp_path / "other.zip")]
    environment = {
        "PYTHONPATH": os.pathsep.join([*zips, *kept]),
        "STRANDLINE_SPARK_HOME": str(home),
        "STRANDLINE_SPARK_PYTHON": sys.executable,
    }
    command = [
        python_env.PYTHON,
        "-c",
        "import os, sys; print(os.environ['PYTHONPATH'], sys.argv[1:])",
        "a b",
        "*",
    ]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=environment)
    assert ran.stdout.strip() == f"{os.pathsep.join(kept)} ['a b', '*']"


def test_a_python_that_somebody_chose_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "theirs")
    python_env.use_installed_python()
    assert os.environ["PYSPARK_PYTHON"] == "theirs"


def test_a_spark_of_somebodys_own_keeps_its_zip_files(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("PYSPARK_PYTHON", "")
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setenv("SPARK_HOME", "/opt/theirs")
    python_env.use_installed_python()
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
