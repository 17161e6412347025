"""The alerts of the orders pipeline: a transform in Python, over DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LARGE = 900


def large(enriched: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    found = enriched.where(f.col("amount") >= LARGE)
    return found.withColumn("reason", f.lit(f"an order of {LARGE} or more"))
