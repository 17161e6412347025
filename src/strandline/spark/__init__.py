"""Spark through PySpark: a source and a sink without jars, and a sink that writes into topics exactly once.

    spark.read.format("strandline").option("kafka.bootstrap.servers", "localhost:9092").option("subscribe", "orders")

needs nothing but `pip install strandline[spark]`: PySpark finds the format by the name of the module
`pyspark_strandline`. Everything here reaches brokers through `strandline.client`, so it works with Apache Kafka too.
"""

from __future__ import annotations

from typing import Any

__all__ = ["exactly_once", "write_atomically"]


def __getattr__(name: str) -> Any:
    """Loads a public name when it is used: Spark imports this package wherever it looks for data sources."""
    if name not in __all__:
        raise AttributeError(name)
    from importlib import import_module

    return getattr(import_module("strandline.spark.sink.exactly_once"), name)
