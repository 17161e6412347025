"""Where fetched oracles live: outside the tree, installed whole or not at all.

A directory under the cache exists only when it is complete: it is built beside its final place and renamed.
Two processes that want the same oracle take turns on a lock file, and the second finds it installed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def oracle_cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "strandline" / "oracles"


def installed(name: str) -> Path | None:
    """Returns the directory of an installed oracle; None if it is not installed."""
    directory = oracle_cache() / name
    return directory if directory.is_dir() else None


def newest_installed(name: str) -> Path | None:
    """Returns the directory of an oracle whose version the machine chose: the one that was installed last."""
    found = [path for path in oracle_cache().glob(f"{name}-*") if path.is_dir()]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def install(name: str, build: Callable[[Path], None]) -> Path:
    """Let `build` fill a temporary directory, then rename it to `name`. Does nothing where it is installed."""
    cache = oracle_cache()
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / f".{name}.lock"):
        final = cache / name
        if final.is_dir():
            return final
        # The dot keeps a directory that a killed process left behind out of `newest_installed`.
        partial = Path(tempfile.mkdtemp(prefix=f".{name}.partial-", dir=cache))
        try:
            build(partial)
            partial.chmod(0o755)
            partial.rename(final)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        return final


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
