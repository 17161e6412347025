"""The exit codes of every command (docs/guides/command-line.md lists them)."""

from __future__ import annotations

from typing import Final

DONE: Final = 0
# The cluster refused it, a part of it failed, or the finding is bad, such as a cluster that is not whole.
FAILED: Final = 1
# Wrong options or values, an unreadable file: nothing was asked of a cluster. argparse ends with 2 as well.
USAGE: Final = 2
# No broker can be reached, or it took too long.
UNREACHABLE: Final = 3
# A topic, group or other thing that was named does not exist.
NOT_FOUND: Final = 4
# The cluster does not permit it: authentication or authorization.
NOT_PERMITTED: Final = 5
# A shell's code for a command that SIGINT ended.
INTERRUPTED: Final = 130
