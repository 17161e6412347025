"""Makes `format("strandline")` known to Spark: PySpark imports every top-level module whose name begins with `pyspark_`
and registers the `DefaultSource` that it finds there. Nothing else lives here."""

from __future__ import annotations

from strandline.spark.source import StrandlineSource as DefaultSource

__all__ = ["DefaultSource"]
