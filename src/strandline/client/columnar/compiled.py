"""The kernels as they run: compiled by numba where it is installed, as plain Python otherwise.

Compiled code is kept beside the source (or in the user's cache directory), so only the first use after an
installation waits for the compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import util
from types import ModuleType
from typing import Any, Final

from strandline.base.kernels import second_copy
from strandline.client.columnar import kernels as plain_kernels

# In the order in which they call each other.
_NAMES: Final = (
    "read_varint",
    "write_varint",
    "varint_size",
    "murmur2",
    "decode_records",
    "decode_headers",
    "write_field",
    "headers_size",
    "write_headers",
    "partition_rows",
    "order_by_partition",
    "encode_records",
)


@dataclass(frozen=True, slots=True)
class RecordKernels:
    """The functions over record batches. `view` turns a numpy array into an object that the functions index:
    itself, or a memoryview for plain Python, whose integers do not overflow."""

    is_compiled: bool
    view: Callable[[Any], Any]
    decode_records: Callable[..., int]
    decode_headers: Callable[..., int]
    partition_rows: Callable[..., int]
    order_by_partition: Callable[..., int]
    encode_records: Callable[..., int]
    murmur2: Callable[..., int]


@cache
def kernels(compiled: bool | None = None) -> RecordKernels:
    """Returns the compiled kernels if numba is installed, or those that `compiled` chooses."""
    if compiled is None:
        compiled = util.find_spec("numba") is not None
    return _compiled() if compiled else _collected(plain_kernels, False, memoryview)


def _compiled() -> RecordKernels:
    from numba import njit

    module = second_copy(plain_kernels)
    module.copy_bytes = _memcpy()
    for name in _NAMES:
        setattr(module, name, njit(cache=True, nogil=True)(getattr(module, name)))
    return _collected(module, True, lambda array: array)


def _memcpy() -> Any:
    """Returns `copy_bytes` as one call of memcpy; its callers have checked the bounds."""
    from numba.core import cgutils, types
    from numba.extending import intrinsic

    @intrinsic
    def copy_bytes(typing: Any, out: Any, to: Any, data: Any, start: Any, size: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            out_type, _, data_type, _, _ = signature.args
            target, to_value, source, start_value, size_value = values
            target = context.make_array(out_type)(context, builder, target).data
            source = context.make_array(data_type)(context, builder, source).data
            raw_memcpy: Any = cgutils.raw_memcpy
            raw_memcpy(
                builder, builder.gep(target, [to_value]), builder.gep(source, [start_value]), size_value, 1
            )
            return context.get_dummy_value()

        return types.none(out, types.int64, data, types.int64, types.int64), emit

    return copy_bytes


def _collected(module: ModuleType, is_compiled: bool, view: Callable[[Any], Any]) -> RecordKernels:
    return RecordKernels(
        is_compiled,
        view,
        module.decode_records,
        module.decode_headers,
        module.partition_rows,
        module.order_by_partition,
        module.encode_records,
        module.murmur2,
    )
