"""The public path of `use_installed_python`, which has Spark's Python processes start quickly."""

from __future__ import annotations

from strandline.spark.runtime.python_env import use_installed_python as use_installed_python
