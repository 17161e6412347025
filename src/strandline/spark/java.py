"""The public path of `use_java`, which points Spark at a Java that fits."""

from __future__ import annotations

from strandline.spark.runtime.java import use_java as use_java
