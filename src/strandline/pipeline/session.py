"""The Spark session of a pipeline: embedded by default, on any master by its URL."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from strandline.pipeline.spec import Spec
from strandline.spark.java import use_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS: Final = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}
# On one machine nobody else needs to reach the driver, and Spark's 200 tasks per shuffle are 190 too many.
_LOCAL_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
}


def start_session(spec: Spec) -> SparkSession:
    use_java()
    # Otherwise tasks run with whichever python3 is first on PATH; they must find the spec's own functions, too.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    paths = [str(spec.directory), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    if not {"SPARK_CONF_DIR", "SPARK_HOME"} & os.environ.keys():
        # Somebody who has a Spark of their own has said what it logs.
        os.environ["SPARK_CONF_DIR"] = str(Path(__file__).parent / "conf")
    from pyspark.sql import SparkSession

    is_local = spec.master.startswith("local")
    settings = {**_SETTINGS, **(_LOCAL_SETTINGS if is_local else {}), **spec.spark}
    builder = SparkSession.builder.master(spec.master).appName(spec.name)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
