"""Tables of orders and of revenue, declared: Spark finds out what depends on what, and keeps them up to date."""

from __future__ import annotations

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

SCHEMA = "order_id string, customer_id string, amount decimal(9,2), at timestamp"


def session() -> SparkSession:
    found = SparkSession.active()
    assert found is not None
    return found


@dp.table
def orders() -> DataFrame:
    """A streaming table, to which rows are appended as records come."""
    stream = (
        session()
        .readStream.format("strandline")
        .option("kafka.bootstrap.servers", os.environ.get("BROKERS", "localhost:9092"))
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
    )
    decoded = stream.select(f.from_json(f.col("value").cast("string"), SCHEMA).alias("o"))
    return decoded.select("o.*").where("order_id IS NOT NULL AND amount > 0")


@dp.materialized_view
def revenue() -> DataFrame:
    """A materialized view, which is computed again from the table."""
    by_hour = session().table("orders").groupBy(f.date_trunc("hour", "at").alias("hour"))
    return by_hour.agg(f.sum("amount").alias("revenue"))
