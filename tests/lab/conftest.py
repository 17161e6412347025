from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-traces",
        metavar="REASON",
        help="write the traces of the lab as they are now, with the reason in their first line",
    )
