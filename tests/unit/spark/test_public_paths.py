"""Paths that guides name stay, whichever rooms the modules are in."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

DAEMON = "import runpy, strandline.spark.runtime.daemon as it; it.main = lambda: print('started'); "


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("pyspark_strandline", "DefaultSource"),
        ("strandline.pipeline", "PipelineFailedError"),
        ("strandline.pipeline", "Runner"),
        ("strandline.pipeline", "Spec"),
        ("strandline.pipeline", "SpecError"),
        ("strandline.pipeline", "explain"),
        ("strandline.pipeline", "load"),
        ("strandline.pipeline", "read_table"),
        ("strandline.pipeline", "run"),
        ("strandline.pipeline", "status"),
        ("strandline.pipeline", "stop"),
        ("strandline.pipeline", "validate"),
        ("strandline.spark", "exactly_once"),
        ("strandline.spark", "write_atomically"),
        ("strandline.spark.avro", "register"),
        ("strandline.spark.java", "use_java"),
        ("strandline.spark.processes", "use_installed_python"),
    ],
)
def test_a_name_is_found_where_the_guides_say(module: str, name: str) -> None:
    pytest.importorskip("pyspark")
    package = import_module(module)
    for each in pkgutil.walk_packages(getattr(package, "__path__", []), f"{module}."):
        import_module(each.name)  # A module of that name would take the place of a function.
    assert callable(getattr(package, name))


def test_spark_can_run_the_daemon_by_its_public_path() -> None:
    script = DAEMON + "runpy.run_module('strandline.spark.daemon', run_name='__main__')"
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout.strip() == "started"
