"""Spark sessions for tests: small, on loopback, without a web page."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from strandline.spark.runtime.java import use_java
from strandline.spark.runtime.python_env import use_installed_python

_CONNECT_SECONDS = "120"


def session(
    directory: Path,
    jars: Path | Sequence[Path] | None = None,
    master: str = "local[2]",
    *,
    is_python_quick: bool = False,
    **more: str,
) -> Any:
    """Returns a session on two cores; `jars` are directories with Spark's own connectors, for tests that compare.
    `is_python_quick` starts Python processes as sessions of pipelines do; without it they start as by default."""
    use_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable  # otherwise whichever python3 is first on PATH
    if is_python_quick:
        del os.environ["PYSPARK_PYTHON"]
        use_installed_python()
    # How long Spark and its Python processes wait for one another; 15 s as shipped, which a busy machine exceeds.
    os.environ["SPARK_AUTH_SOCKET_TIMEOUT"] = _CONNECT_SECONDS
    from pyspark.sql import SparkSession

    settings = {
        "spark.python.authenticate.socketTimeout": f"{_CONNECT_SECONDS}s",
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.local.dir": str(directory / "local"),
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto",
        "spark.driver.memory": "700m",
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    folders = [jars] if isinstance(jars, Path) else jars
    if folders:
        settings["spark.jars"] = ",".join(
            str(path) for folder in folders for path in sorted(folder.glob("*.jar"))
        )
    builder = SparkSession.builder.master(master).appName("strandline-tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    started = builder.getOrCreate()
    started.sparkContext.setLogLevel("ERROR")
    return started
