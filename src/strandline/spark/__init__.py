"""Spark through PySpark: a source and a sink without jars, and a sink that writes into topics exactly once.

    spark = strandline.spark.session()
    spark.read.format("strandline").option("kafka.bootstrap.servers", "localhost:9092").option("subscribe", "orders")

needs only `pip install strandline[spark]`: PySpark finds the format by the name of the module `pyspark_strandline`.
Everything here reaches brokers through `strandline.client`, so it works with Apache Kafka too.

Importing this package sets PYSPARK_PYTHON to the running interpreter if it is unset and no session exists. Otherwise
Spark would look for the format with the `python3` that is first on PATH.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from strandline.spark.registry_values import to_registry as to_registry
    from strandline.spark.sessions import prepare as prepare
    from strandline.spark.sessions import session as session
    from strandline.spark.sink.exactly_once import exactly_once as exactly_once
    from strandline.spark.sink.exactly_once import write_atomically as write_atomically

__all__ = ["exactly_once", "prepare", "session", "to_registry", "write_atomically"]

_HOMES: Final = {
    "exactly_once": "sink.exactly_once",
    "prepare": "sessions",
    "session": "sessions",
    "to_registry": "registry_values",
    "write_atomically": "sink.exactly_once",
}


def _choose_python() -> None:
    pyspark = sys.modules.get("pyspark")
    is_running = pyspark is not None and pyspark.SparkContext._active_spark_context is not None
    if not is_running:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


_choose_python()

if not TYPE_CHECKING:  # a type checker that saw this function would accept any name

    def __getattr__(name: str) -> Any:
        """Loads a public name when it is used: Spark imports this package wherever it looks for data sources."""
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{home}"), name)
