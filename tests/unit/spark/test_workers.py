"""Processes that run tasks do not walk their modules after each."""

from __future__ import annotations

import gc
import platform

from strandline.spark.runtime.worker_setup import get_ready, keep_memory, leave_modules_alone


def test_what_a_process_has_loaded_is_left_alone_by_the_collector() -> None:
    get_ready.cache_clear()
    leave_modules_alone.cache_clear()
    gc.unfreeze()
    try:
        get_ready()
        frozen = gc.get_freeze_count()
        get_ready()
        assert frozen > len(gc.get_objects()), "most of what there is"
        assert gc.get_freeze_count() <= frozen, "once in a process"
    finally:
        gc.unfreeze()


def test_glibc_keeps_the_memory_of_tables() -> None:
    assert keep_memory() == (platform.libc_ver()[0] == "glibc")
