"""The modules that need the extra `strandline[columnar]`: a plain install has none of its packages."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

_PACKAGES: Final = ("numba", "numpy", "pyarrow", "zstandard")


def columnar_module(name: str) -> Any:
    """Imports the module of this name. Its ModuleNotFoundError has the command that installs the missing package."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _PACKAGES:
            raise
        raise ModuleNotFoundError(
            f"tables need {error.name}, which is not installed: pip install 'strandline[columnar]'",
            name=error.name,
        ) from error
