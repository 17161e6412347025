"""Processes that run tasks do not walk their modules after each."""

from __future__ import annotations

import gc
import platform

from strandline.spark.runtime.worker_setup import freeze_loaded_modules, keep_freed_memory, set_up_worker


def test_objects_that_a_process_has_loaded_are_left_alone_by_the_collector() -> None:
    set_up_worker.cache_clear()
    freeze_loaded_modules.cache_clear()
    gc.unfreeze()
    try:
        set_up_worker()
        frozen = gc.get_freeze_count()
        set_up_worker()
        assert frozen > len(gc.get_objects()), "most of what there is"
        assert gc.get_freeze_count() <= frozen, "once in a process"
    finally:
        gc.unfreeze()


def test_glibc_keeps_the_memory_of_tables() -> None:
    assert keep_freed_memory() == (platform.libc_ver()[0] == "glibc")
