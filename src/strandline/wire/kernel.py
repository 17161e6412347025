"""The compiled kernel, a distribution of its own (`pip install 'strandline[fast]'`), if it is installed and fits.

`KERNEL` is its module, or None: then the same rules run in Python. `NOTE` says in one line why it is None; a node logs
it when it starts.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

# The version of the kernel's interface. A kernel with another number is not used.
KERNEL_ABI: Final = 1

_COST = "records are checked in Python, about 2 microseconds each where the kernel takes 0.01"
_ADVICE = "`pip install 'strandline[fast]'` brings the kernel"


def load(module_name: str = "strandline_kernel") -> tuple[Any, str]:
    """Returns the kernel's module and an empty note, or None and the reason."""
    try:
        kernel = import_module(module_name)
        found = kernel.ABI
        kernel.check  # noqa: B018  a module of another kind has none
    except ModuleNotFoundError as error:
        if error.name == module_name:
            return None, f"The compiled kernel is not installed: {_COST}; {_ADVICE}."
        return None, _broken(error)
    except Exception as error:  # a library that does not fit the machine fails in its own way
        return None, _broken(error)
    if found != KERNEL_ABI:
        return None, f"The compiled kernel has ABI {found} instead of {KERNEL_ABI}: {_COST}; {_ADVICE}."
    return kernel, ""


def _broken(error: Exception) -> str:
    return f"The compiled kernel cannot be loaded ({error}): {_COST}; {_ADVICE}."


KERNEL, NOTE = load()
