"""Starts Strandline without sendfile: records are read into memory and sent from there, to measure the difference."""

from __future__ import annotations

import sys

from strandline.broker.server import connection
from strandline.cli.main import main

_NEVER = sys.maxsize

if __name__ == "__main__":
    assert hasattr(connection, "SENT_FROM_FILE_MIN"), "it is decided by another name now"
    connection.SENT_FROM_FILE_MIN = _NEVER  # type: ignore[misc]
    sys.exit(main())
