"""The Spark session of an audit, which ends with it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from strandline.spark.java import use_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}
_LOCAL_SETTINGS: Final = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


@contextmanager
def audit_session(master: str, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    use_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if not {"SPARK_CONF_DIR", "SPARK_HOME"} & os.environ.keys():
        os.environ["SPARK_CONF_DIR"] = str(Path(__file__).parent / "conf")  # errors only
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("strandline audit")
    own = {**_SETTINGS, **(_LOCAL_SETTINGS if master.startswith("local") else {}), **settings}
    for name, value in own.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()
