"""Spark through PySpark: a source and a sink without jars, and a sink that writes into topics exactly once.

    spark.read.format("strandline").option("kafka.bootstrap.servers", "localhost:9092").option("subscribe", "orders")

needs nothing but `pip install strandline[spark]`: PySpark finds the format by the name of the module
`pyspark_strandline`. Everything here reaches brokers through `strandline.client`, so it works with Apache Kafka too.
"""
