"""Spark with topics and no jars: batch, stream, exactly once. `python examples/spark_tour.py [BOOTSTRAP]`

Starts a broker of its own, or takes the address of any Kafka cluster. Needs `pip install '.[spark]'`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from strandline.client.sync import Admin, Producer
from strandline.spark import exactly_once
from strandline.spark.java import use_java
from strandline.testing import running_broker

ORDERS, BIG, GROUP = "tour-spark-orders", "tour-spark-big", "tour-spark-progress"


def tour(spark: Any, bootstrap: str, checkpoint: Path) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin, Producer(bootstrap_servers=bootstrap) as producer:
        for topic in (ORDERS, BIG):
            admin.create_topic(topic, partitions=2)
        for number in range(1000):
            order = (
                f'{{"order":{number},"region":"{"north" if number % 3 else "south"}","amount":{number % 50}}}'
            )
            producer.send(ORDERS, order.encode(), b"customer-%d" % (number % 20))

    servers = {"kafka.bootstrap.servers": bootstrap, "subscribe": ORDERS}
    orders = "from_json(cast(value as string), 'order long, region string, amount long') as o"
    batch = spark.read.format("strandline").options(**servers).load()
    batch.selectExpr(orders).select("o.*").groupBy("region").sum("amount").orderBy("region").show()

    stream = (
        spark.readStream.format("strandline")
        .options(**servers, startingOffsets="earliest", maxOffsetsPerTrigger="400", commitGroup=GROUP)
        .load()
    )
    big = stream.selectExpr("key", "value", orders).where("o.amount >= 40").select("key", "value")
    query = (
        exactly_once(big, bootstrap, topic=BIG)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    print("batches:", [batch.numInputRows for batch in query.recentProgress])
    written = spark.read.format("strandline").options(**{**servers, "subscribe": BIG})
    print("big orders:", written.option("kafka.isolation.level", "read_committed").load().count())
    with Admin(bootstrap_servers=bootstrap) as admin:
        committed = admin.list_group_offsets(GROUP)
        print("the group sees:", {str(where): each.offset for where, each in sorted(committed.items())})


def main() -> None:
    use_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
    }
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as directory:
        checkpoint = Path(directory) / "checkpoint"
        if len(sys.argv) > 1:
            tour(spark, sys.argv[1], checkpoint)
        else:
            with running_broker() as broker:
                tour(spark, broker.bootstrap, checkpoint)
    spark.stop()


if __name__ == "__main__":
    main()
