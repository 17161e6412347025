"""Keeps PySpark from logging errors that its caller reports."""

from __future__ import annotations


def silence_query_errors() -> None:
    """Stops PySpark from printing each error of a query, with two stacks, before its caller reports it."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel("CRITICAL")
