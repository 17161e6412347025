"""`python -m strandline` is the `strandline` command."""

from __future__ import annotations

import sys

from strandline.cli import main

if __name__ == "__main__":
    sys.exit(main())
