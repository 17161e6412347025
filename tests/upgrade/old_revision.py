"""An old revision of Strandline, taken from the repository's history, whose command line runs beside today's.

Its source is unpacked once into the cache of oracles (`git archive`: the repository gets no worktree that somebody has
to remove), and its commands find it by PYTHONPATH.
"""

from __future__ import annotations

import compileall
import os
import subprocess
import tarfile
from contextlib import AbstractContextManager
from io import BytesIO
from pathlib import Path
from typing import Final

from tests.oracle.cache import install
from tests.system.commands import Command, command

# The last revision of 0.1.0.
V0_1_0: Final = "9693e8d0d3e412ce8faa118a49f262d3a900097e"
_ROOT: Final = Path(__file__).parents[2]


class RevisionMissing(Exception):
    """The repository does not have the revision."""


def source_of(revision: str) -> Path:
    """Returns the directory to put on PYTHONPATH. Raises RevisionMissing, which says how to get the history."""
    return install(f"strandline-{revision[:12]}", lambda place: _unpack(revision, place)) / "src"


def _unpack(revision: str, place: Path) -> None:
    archive = ["git", "archive", "--format=tar", revision, "src"]
    packed = subprocess.run(archive, cwd=_ROOT, capture_output=True, check=False)
    if packed.returncode != 0:
        raise RevisionMissing(
            f"revision {revision[:7]} is needed to write data as 0.1.0 did, and this clone does not have it: fetch the "
            f"whole history, with `git fetch --unshallow` ({packed.stderr.decode().strip()})"
        )
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as tar:
        tar.extractall(place, filter="data")
    # Spark gives a Python process 10 s to start, and several of them start at once.
    compileall.compile_dir(place, quiet=1)


def old_command(*arguments: str, revision: str = V0_1_0) -> AbstractContextManager[Command]:
    """Returns the `strandline` command of the old revision, with the Python and the packages of today."""
    path = os.pathsep.join(filter(None, (str(source_of(revision)), os.environ.get("PYTHONPATH"))))
    return command(*arguments, env={"PYTHONPATH": path}, module="strandline.cli.main")
