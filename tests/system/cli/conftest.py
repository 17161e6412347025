"""A broker for the commands, and a way to run them in this process."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from strandline.cli.main import main
from strandline.cli.output.document import mismatch
from strandline.cli.parser import build_parser
from strandline.testing import running_broker


class Ran(NamedTuple):
    """The exit code and output of a command."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with running_broker() as broker:
        yield broker.bootstrap


@pytest.fixture(autouse=True)
def own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bootstrap: str) -> None:
    """No context of the person who runs the tests; commands find the test's broker."""
    monkeypatch.setenv("STRANDLINE_CONFIG", str(tmp_path / "contexts.json"))
    monkeypatch.setenv("STRANDLINE_BOOTSTRAP_SERVERS", bootstrap)
    monkeypatch.delenv("STRANDLINE_CONTEXT", raising=False)


@pytest.fixture
def run(capfdbinary: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Ran]:
    """Runs a command with these arguments, and `stdin` as bytes."""

    def once(*arguments: str, stdin: bytes = b"") -> Ran:
        given = tmp_path / "stdin"
        given.write_bytes(stdin)
        with given.open("rb") as file:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
            try:
                code = main(list(arguments))
            except SystemExit as ended:
                code = int(ended.code or 0)
        out, err = capfdbinary.readouterr()
        return Ran(code, out.decode(errors="surrogateescape"), err.decode())

    return once


@pytest.fixture
def json_of(run: Callable[..., Ran]) -> Callable[..., Any]:
    """The JSON of a command that must succeed and have the shape that its help declares."""

    def once(*arguments: str, stdin: bytes = b"", code: int = 0) -> Any:
        ran = run(*arguments, "--json", stdin=stdin)
        assert ran.code == code, ran.err
        document = json.loads(ran.out)
        shape = build_parser(arguments).parse_args([*arguments, "--json"]).json_shape
        assert mismatch(document, shape) is None
        return document

    return once
