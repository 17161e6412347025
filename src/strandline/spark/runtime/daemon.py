"""Spark's daemon of Python processes, with the modules of tasks loaded before it forks: `spark.python.daemon.module`.

PySpark's own daemon forks first, so that each process loads pandas, Arrow and the kernels again, for a second or more.
It does so because libraries may start threads when they are imported, and a fork has none of them. The modules that are
loaded here start no threads but jemalloc's, which knows of forks; a test checks that. Only sessions that Strandline
starts use this daemon; other sessions have the daemon that their users chose.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Final

# The modules that tasks of the source and the sinks import when they run.
_PRELOADED: Final = (
    "pandas",
    "pyspark.worker",
    "pyspark.sql.pandas.serializers",
    "strandline.client.sync",
    "strandline.spark.range_reader",
    "strandline.spark.sink.task_writer",
    "strandline.spark.micro_batches",
    "strandline.spark.sink.at_least_once",
)


def preload() -> None:
    """Imports the modules of tasks and prepares the process for them."""
    # numpy would start a thread for each core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in _PRELOADED:
        importlib.import_module(name)
    from strandline.spark.runtime.worker_setup import set_up_worker

    set_up_worker()


def main() -> None:
    """Runs PySpark's daemon in this process, after `preload`."""
    try:
        preload()
    except Exception as error:
        # A task that needs the missing module raises an error that the user sees.
        print(f"strandline: not loaded before the first task: {error!r}", file=sys.stderr)
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
