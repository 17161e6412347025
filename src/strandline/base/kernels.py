"""The common base of modules of kernels, which are functions in the part of Python that numba compiles.

A module of kernels is compiled as a second copy: compiled kernels call each other through their module, and the plain
ones stay as they are for installations without numba, and for tests.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import util
from types import ModuleType
from typing import Any

INT64_MAX = 0x7FFFFFFFFFFFFFFF


def read_varint(data: Any, p: Any, end: Any) -> Any:
    """Returns a zigzag varint and the position after it, which is -1 if there is none."""
    value = 0
    shift = 0
    while True:
        if p >= end or shift > 63:
            return 0, -1
        byte = data[p] & 0xFF
        p += 1
        if shift == 63 and byte > 1:
            return 0, -1  # more than 64 bits
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return ((value >> 1) & INT64_MAX) ^ -(value & 1), p
        shift += 7


def second_copy(module: ModuleType) -> Any:
    """Returns the module loaded a second time, without a name, so that its functions can be replaced by compiled
    ones."""
    spec = util.find_spec(module.__name__)
    assert spec is not None
    assert spec.loader is not None
    again = util.module_from_spec(spec)
    spec.loader.exec_module(again)
    return again


def compiled_copy(module: ModuleType, names: Iterable[str]) -> Any:
    """Returns a second copy in which these functions are compiled, in the order in which they call each other."""
    from numba import njit

    again = second_copy(module)
    for name in names:
        setattr(again, name, njit(cache=True, nogil=True)(getattr(again, name)))
    return again
