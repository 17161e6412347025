"""The kernels: compiled by numba if it is installed, otherwise as plain Python.

`strandline.client.columnar.compiled` does the same for record batches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import util
from typing import Any, Final

from strandline.avro import kernels as plain_kernels
from strandline.base.kernels import second_copy

# In the order in which they call each other.
_NAMES: Final = (
    "read_varint",
    "is_text",
    "limb",
    "decimal_fits",
    "read_decimals",
    "append",
    "append_null",
    "next_block",
    "read_fixed_bits",
    "read_number",
    "read_span",
    "walk",
    "decode_values",
)
_CALLED: Final = ("read_decimals", "decode_values")


@dataclass(frozen=True, slots=True)
class AvroKernels:
    """The functions over Avro values. `view` turns a numpy array into an object that the functions index: itself,
    or a memoryview for plain Python, whose integers do not overflow."""

    view: Callable[[Any], Any]
    decode_values: Callable[..., int]
    read_decimals: Callable[..., int]


@cache
def kernels(compiled: bool | None = None) -> AvroKernels:
    """Returns the compiled kernels if numba is installed, or those that `compiled` selects."""
    if compiled is None:
        compiled = util.find_spec("numba") is not None
    if not compiled:
        return AvroKernels(memoryview, plain_kernels.decode_values, plain_kernels.read_decimals)
    from numba import njit

    module = second_copy(plain_kernels)
    for name in _NAMES:
        # Small functions are inlined: a call would take longer than their work, because an array is seven arguments.
        compiler = njit(cache=True, nogil=True, forceinline=name not in _CALLED)
        setattr(module, name, compiler(getattr(module, name)))
    return AvroKernels(lambda array: array, module.decode_values, module.read_decimals)
