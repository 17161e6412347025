"""What a Python process of Spark does once, so that each of its tasks is quick.

Spark's Python processes run one task after the other, and collect garbage after each: that walks every object of
every module that is loaded, 40 ms with what PySpark itself loads and 85 ms with the compiler of the kernels, for each
task. So before its first task a process loads all that tasks need, and has the collector leave it alone from then on.

Tables of some megabytes come and go. Left alone glibc gives the memory of each back to the system, which clears it
before the next one can have it: a tenth of the CPU time of reading a topic.
"""

from __future__ import annotations

import ctypes
import gc
from functools import cache
from typing import Final

# Of malloc.h: how much may be free before some is given back, and from which size on memory is the system's own. The
# second is the most that glibc takes.
_TRIM_THRESHOLD: Final = (-1, 64 * 1024 * 1024)
_MMAP_THRESHOLD: Final = (-3, 32 * 1024 * 1024)


@cache
def get_ready() -> None:
    """Called at the start of each task; does nothing but the first time in a process."""
    from strandline.client.columnar.warming import warm_up

    keep_memory()
    warm_up()
    leave_modules_alone()


def keep_memory() -> bool:
    """Whether the system's malloc takes these settings: glibc's does, others have none."""
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return all(set_option(*option) for option in (_TRIM_THRESHOLD, _MMAP_THRESHOLD))


@cache
def leave_modules_alone() -> None:
    """For processes that plan and do not touch records: they need no kernels."""
    gc.collect()
    gc.freeze()
