"""A module of kernels a second time, to be compiled.

Compiled kernels call each other through their module, and the plain ones stay as they are for who has no numba, and for
tests.
"""

from __future__ import annotations

from importlib import util
from types import ModuleType
from typing import Any


def second_copy(module: ModuleType) -> Any:
    spec = util.find_spec(module.__name__)
    assert spec is not None
    assert spec.loader is not None
    again = util.module_from_spec(spec)
    spec.loader.exec_module(again)
    return again
