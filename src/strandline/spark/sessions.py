"""One call for a Spark session that works: Java, the interpreter, time-outs, and Python processes that start quickly.

    from strandline.spark import session

    spark = session("orders")                                            # on this machine
    spark = prepare(SparkSession.builder.appName("orders")).getOrCreate()  # a builder of one's own

Both must be called before the process has a session. Settings that the user made in the environment, or on the builder
after `prepare`, are kept.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from strandline.spark.runtime import python_env
from strandline.spark.runtime.java import use_java
from strandline.spark.runtime.python_env import use_installed_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The time that Spark and its Python processes wait for one another. Spark's default is 15 s, which a busy machine
# exceeds.
_CONNECT_SECONDS: Final = "120"
_SOCKET_TIMEOUT: Final = "spark.python.authenticate.socketTimeout"
SETTINGS: Final[Mapping[str, str]] = {
    _SOCKET_TIMEOUT: f"{_CONNECT_SECONDS}s",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}
# On one machine no other host needs to reach the driver, and Spark's 200 tasks per shuffle are 190 too many.
LOCAL_SETTINGS: Final[Mapping[str, str]] = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
    **python_env.SETTINGS,
}


def prepare_process(*, is_local: bool) -> None:
    """Prepares the environment of this process for a session. `is_local` says that tasks run on this machine."""
    use_java()
    if is_local:
        use_installed_python()
    # Otherwise Spark looks data sources up, and runs tasks, with the python3 that is first on PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_AUTH_SOCKET_TIMEOUT", _CONNECT_SECONDS)


def prepare(builder: Any) -> Any:
    """Returns the builder with timeouts that are long enough for a busy machine, and prepares the environment of this
    process. Use it for a session with a master, a name and settings of your own."""
    prepare_process(is_local=False)
    return builder.config(
        "spark.python.authenticate.socketTimeout", SETTINGS["spark.python.authenticate.socketTimeout"]
    )


def session(
    name: str = "strandline", *, master: str = "local[*]", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Starts a session, or returns the one that runs. `settings` override Strandline's own."""
    is_local = master.startswith("local")
    prepare_process(is_local=is_local)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName(name)
    for key, value in {**SETTINGS, **(LOCAL_SETTINGS if is_local else {}), **(settings or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
