"""Reference pages say what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.broker.api.table import TABLE
from strandline.cli.docs import pages
from tests.tidy import adr_index, api_index, blocking_calls, client_keywords

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
HANDLERS = Path(__file__).parents[2] / "src" / "strandline" / "broker" / "api"


@pytest.mark.parametrize("name", sorted(pages()))
def test_page_is_what_the_code_generates(name: str) -> None:
    assert (REFERENCE / name).read_text() == pages()[name], "run `make docs`"


def test_every_handler_has_one_row_and_one_file() -> None:
    files = {path.stem for path in HANDLERS.glob("k*.py")}
    assert files == {api.module for api in TABLE.values()}
    assert all(api.module.startswith(f"k{api.key:02d}_") for api in TABLE.values())


def test_types_of_the_blocking_clients_are_those_of_the_asyncio_ones() -> None:
    assert blocking_calls.FILE.read_text() == blocking_calls.text(), "run `make docs`"


def test_keywords_of_the_clients_are_their_settings() -> None:
    assert client_keywords.FILE.read_text() == client_keywords.text(), "run `make docs`"


def test_the_index_of_apis_is_what_the_wire_classes_say() -> None:
    assert api_index.PATH.read_text() == api_index.render(), "run make docs"


def test_every_decision_is_in_the_index() -> None:
    assert adr_index.FILE.read_text() == adr_index.render(), "run `make docs`"
