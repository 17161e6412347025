"""What a Python process of Spark does once, so that each of its tasks is quick.

Spark's Python processes run one task after the other, and collect garbage after each: that walks every object of
every module that is loaded, 40 ms with what PySpark itself loads and 85 ms with the compiler of the kernels, for each
task. So before its first task a process loads all that tasks need, and has the collector leave it alone from then on.
"""

from __future__ import annotations

import gc
from functools import cache


@cache
def get_ready() -> None:
    """Called at the start of each task; does nothing but the first time in a process."""
    from strandline.client.columnar.warming import warm_up

    warm_up()
    leave_modules_alone()


@cache
def leave_modules_alone() -> None:
    """For processes that plan and do not touch records: they need no kernels."""
    gc.collect()
    gc.freeze()
