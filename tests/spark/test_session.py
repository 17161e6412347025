"""Starts as cron, a notebook and a plain script make them: the interpreter is not on PATH, and nothing is set."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from strandline.testing import running_broker

READ = """
rows = spark.read.format("strandline").option("kafka.bootstrap.servers", {bootstrap!r}).option("subscribe", "t").load()
print("rows", rows.count())
spark.stop()
"""
BARE = """
        from strandline.spark.java import use_java
        use_java()
        import os; os.environ.pop("PYSPARK_PYTHON", None)  # as for somebody who imports nothing of ours
        from pyspark.sql import SparkSession
        spark = SparkSession.builder.master('local[1]').config('spark.driver.host', '127.0.0.1').getOrCreate()
"""
# What `make test` runs; the others are for `make soak`.
SHORT = ("the one call",)
STARTS = {
    "a notebook's cells": """
        import asyncio, pyspark
        async def kernel():  # cells run on a loop, after others have imported PySpark
            exec("from strandline.spark import session; spark = session('n', master='local[1]')", globals())
        asyncio.run(kernel())
    """,
    "an environment that is activated": BARE,
    "the one call": "from strandline.spark import session\nspark = session('cron', master='local[1]')\n",
    "an import": """
        import strandline.spark
        from strandline.spark.java import use_java
        from pyspark.sql import SparkSession
        use_java()
        spark = SparkSession.builder.master('local[1]').config('spark.driver.host', '127.0.0.1').getOrCreate()
    """,
    "a builder of one's own": """
        from pyspark.sql import SparkSession
        from strandline.spark import prepare
        spark = prepare(SparkSession.builder.master('local[1]').config('spark.driver.host', '127.0.0.1')).getOrCreate()
    """,
}


def run(script: str, path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=300,
        env={"PATH": path, "HOME": os.environ.get("HOME", "/")},
        check=False,
    )


@pytest.mark.parametrize("start", STARTS)
def test_the_format_is_found_as_people_start_python(start: str) -> None:
    from strandline.client.sync import Producer

    if start not in SHORT and os.environ.get("STRANDLINE_SOAK") != "1":
        pytest.skip("long: set STRANDLINE_SOAK=1")
    # cron has no environment on its path, and neither has a kernel.
    path = f"{os.path.dirname(sys.executable)}:/usr/bin:/bin" if STARTS[start] is BARE else "/usr/bin:/bin"

    with running_broker() as broker:
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            producer.send("t", b"x")
        ran = run(textwrap.dedent(STARTS[start]) + READ.format(bootstrap=broker.bootstrap), path)
    assert "rows 1" in ran.stdout, ran.stderr[-3000:]


def test_without_our_import_spark_prints_the_error_of_the_guide() -> None:
    ran = run(textwrap.dedent(BARE) + READ.format(bootstrap="localhost:1"), "/usr/bin:/bin")
    shown = "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: strandline"
    assert shown in ran.stderr
    guide = Path(__file__).parents[2] / "docs" / "guides" / "spark-troubleshooting.md"
    assert shown in guide.read_text()
