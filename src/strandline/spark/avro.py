"""The public path of `register`, which makes `format("strandline-avro")` known to a session."""

from __future__ import annotations

from strandline.spark.avro_columns import register as register
