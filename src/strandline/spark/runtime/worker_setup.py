"""Prepares a Python process of Spark once, so that each of its tasks is quick.

Spark's Python processes run one task after the other, and collect garbage after each: that walks every object of every
module that is loaded, 40 ms with the modules of PySpark itself and 85 ms with the compiler of the kernels, for each
task. So before its first task a process loads everything that tasks need, and excludes it from garbage collection from
then on.

Tables of some megabytes come and go. By default glibc gives the memory of each back to the system, which clears it
before the next one can have it: a tenth of the CPU time of reading a topic.
"""

from __future__ import annotations

import ctypes
import gc
from functools import cache
from typing import Final

# Options of malloc.h: how much may be free before some is given back, and from which size on memory comes from the
# system directly. The second value is the largest that glibc takes.
_TRIM_THRESHOLD: Final = (-1, 64 * 1024 * 1024)
_MMAP_THRESHOLD: Final = (-3, 32 * 1024 * 1024)


@cache
def set_up_worker() -> None:
    """Prepares the process for tasks. Each task calls it, and all calls but the first do nothing."""
    from strandline.client.columnar.warming import warm_up

    keep_freed_memory()
    warm_up()
    freeze_loaded_modules()


def keep_freed_memory() -> bool:
    """Has malloc keep the memory of freed tables; true if it takes these settings, which only glibc has."""
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return all(set_option(*option) for option in (_TRIM_THRESHOLD, _MMAP_THRESHOLD))


@cache
def freeze_loaded_modules() -> None:
    """Excludes loaded modules from garbage collection. Processes that only plan call this alone, because they need no
    kernels."""
    gc.collect()
    gc.freeze()
