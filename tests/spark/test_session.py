"""Starts as cron, a notebook and a plain script make them: the interpreter is not on PATH, and nothing is set."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from strandline.testing import running_broker

READ = """
rows = spark.read.format("strandline").option("kafka.bootstrap.servers", {bootstrap!r}).option("subscribe", "t").load()
print("rows", rows.count())
spark.stop()
"""
STARTS = {
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


@pytest.mark.parametrize("start", STARTS)
def test_the_format_is_found_though_another_python_is_first_on_path(start: str) -> None:
    from strandline.client.sync import Producer

    with running_broker() as broker:
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            producer.send("t", b"x")
        script = textwrap.dedent(STARTS[start]) + READ.format(bootstrap=broker.bootstrap)
        ran = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            timeout=300,
            env={"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/")},
            check=False,
        )
    assert "rows 1" in ran.stdout, ran.stderr[-3000:]
