"""Debian packages without root: downloaded with apt-get, unpacked into a directory, nothing installed.

Only what the machine lacks is unpacked; what it has already is used where it is. Where the machine has no
package lists (container images often delete them) a private copy is fetched, because `apt-get update` on the
real ones needs root.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# A download on a slow line, not a hang.
_APT_TIMEOUT_S = 900


class CannotFetchError(Exception):
    """Why an oracle cannot be had on this machine, in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A package and those of its dependencies that the machine lacks."""

    version: str
    missing: tuple[tuple[str, str], ...]
    apt_options: tuple[str, ...]

    def unpack(self, into: Path) -> None:
        """Unpack everything as if `into` were the root directory."""
        with tempfile.TemporaryDirectory() as archives:
            wanted = [f"{name}={version}" for name, version in self.missing]
            _run(["apt-get", *self.apt_options, "download", *wanted], cwd=Path(archives))
            for archive in sorted(Path(archives).glob("*.deb")):
                _run(["dpkg-deb", "-x", str(archive), str(into)])
        _redirect_links(into)


@contextmanager
def planned(package: str) -> Iterator[Plan]:
    """Yields the plan of the packages to unpack for `package`. It is valid while the context is open."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise CannotFetchError("this machine has no apt-get and dpkg-deb")
    with tempfile.TemporaryDirectory() as scratch:
        options = _package_lists(package, Path(scratch))
        missing = _to_install(package, options)
        versions = [version for name, version in missing if name == package]
        if not versions:
            raise CannotFetchError(f"the package {package} is installed already, but not usable")
        # A Debian version may begin with an epoch, whose colon would end a path in LD_LIBRARY_PATH.
        version = versions[0].rpartition(":")[2]
        yield Plan(version=version, missing=tuple(missing), apt_options=tuple(options))


def library_directories(root: Path) -> list[Path]:
    """Returns the directories of the shared libraries in `root`, for LD_LIBRARY_PATH."""
    return sorted({path.parent for path in root.rglob("*.so*")})


def _package_lists(package: str, scratch: Path) -> list[str]:
    """apt-get's options under which it knows `package`."""
    if _knows(package, []):
        return []
    for name in ("lists", "cache"):
        (scratch / name / "partial").mkdir(parents=True)
    private = ["-o", f"Dir::State::lists={scratch}/lists", "-o", f"Dir::Cache={scratch}/cache"]
    _run(["apt-get", *private, "update"])
    if not _knows(package, private):
        raise CannotFetchError(f"this distribution has no package {package}")
    return private


def _knows(package: str, options: list[str]) -> bool:
    shown = subprocess.run(
        ["apt-cache", *options, "show", "--no-all-versions", package],
        capture_output=True,
        timeout=_APT_TIMEOUT_S,
        check=False,
    )
    return shown.returncode == 0


def _to_install(package: str, options: list[str]) -> list[tuple[str, str]]:
    """Returns the packages that apt-get would install, as (name, version). It only plans, so it needs no root."""
    plan = _run(["apt-get", *options, "install", "--simulate", "--no-install-recommends", package])
    return re.findall(r"^Inst (\S+) \((\S+) ", plan, flags=re.MULTILINE)


def _redirect_links(root: Path) -> None:
    """Absolute links of a package point at the machine; where the target was unpacked instead, point there."""
    for link in root.rglob("*"):
        if not link.is_symlink():
            continue
        target = os.readlink(link)
        unpacked = root / target.lstrip("/")
        if target.startswith("/") and not Path(target).exists() and os.path.lexists(unpacked):
            link.unlink()
            link.symlink_to(os.path.relpath(unpacked, link.parent))


def _run(command: list[str], *, cwd: Path | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
        capture_output=True,
        text=True,
        timeout=_APT_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["nothing said"]
        raise CannotFetchError(f"`{' '.join(command[:1] + command[-2:])}` failed: {said[-1]}")
    return done.stdout
