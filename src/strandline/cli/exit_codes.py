"""The exit codes of every command (docs/guides/command-line.md lists them)."""

from __future__ import annotations

from typing import Final

DONE: Final = 0
# The cluster refused the command, a part of it failed, or its finding is bad, such as replicas that are not in sync.
FAILED: Final = 1
# Options or values are wrong, or a file cannot be read; no request was sent. argparse ends with 2 as well.
USAGE: Final = 2
# No broker can be reached, or the command took too long.
UNREACHABLE: Final = 3
# A topic, group or other thing that was named does not exist.
NOT_FOUND: Final = 4
# The cluster does not permit the command: authentication or authorization failed.
NOT_PERMITTED: Final = 5
# The exit code of shells for a command that SIGINT ended.
INTERRUPTED: Final = 130
