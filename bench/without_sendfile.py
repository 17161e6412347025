"""Starts Strandline with every record read into memory and sent from there, to see what sendfile is worth."""

from __future__ import annotations

import sys

from strandline.cli.main import main
from strandline.node import network

_NEVER = sys.maxsize

if __name__ == "__main__":
    assert hasattr(network, "SENDFILE_BYTES_MIN"), "the network decides by another name now"
    network.SENDFILE_BYTES_MIN = _NEVER  # type: ignore[misc]
    sys.exit(main())
