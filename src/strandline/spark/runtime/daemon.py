"""Spark's daemon of Python processes with what tasks need loaded before it forks them: `spark.python.daemon.module`.

PySpark's own daemon forks first, so that each process loads pandas, Arrow and the kernels again, for a second or more.
It does so because libraries may start threads when they are imported, of which a fork has none. Those that are loaded
here start none but jemalloc's, which knows of forks; a test looks at that. For sessions that are ours: somebody else's
has the daemon that they chose.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Final

# What tasks of the source and the sinks import when they run.
_MODULES: Final = (
    "pandas",
    "pyspark.worker",
    "pyspark.sql.pandas.serializers",
    "strandline.client.sync",
    "strandline.spark.range_reader",
    "strandline.spark.sink.task_writer",
    "strandline.spark.micro_batches",
    "strandline.spark.sink.at_least_once",
)


def load() -> None:
    # numpy would start a thread for each core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in _MODULES:
        importlib.import_module(name)
    from strandline.spark.runtime.worker_setup import get_ready

    get_ready()


def main() -> None:
    try:
        load()
    except Exception as error:
        # A task that needs what is missing says so where somebody reads it.
        print(f"strandline: not loaded before the first task: {error!r}", file=sys.stderr)
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
