"""A volume of a few megabytes for one process: a tmpfs in a mount namespace of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.oracle.require import give_up


def on_small_volume(directory: Path, size: str) -> list[str]:
    """Returns the prefix of a command for which, and for no other process, `directory` is a small volume."""
    mount = f'mount -t tmpfs -o size={size} tmpfs "{directory}" && exec "$@"'
    for unshare in (["unshare", "--user", "--map-root-user", "--mount"], ["unshare", "--mount"]):
        if "--user" not in unshare and os.geteuid() != 0:
            continue
        prefix = [*unshare, "sh", "-c", mount, "sh"]
        try:
            if (
                subprocess.run([*prefix, "true"], check=False, capture_output=True, timeout=10).returncode
                == 0
            ):
                return prefix
        except (OSError, subprocess.TimeoutExpired):
            continue
    give_up("neither user namespaces nor root: a small volume cannot be mounted")
    raise AssertionError("unreachable: giving up raises")
