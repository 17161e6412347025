"""Holds what commands print with `--json` against the shape that their help declares."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from strandline.cli.output.document import mismatch
from strandline.cli.parser import build_parser


def declared_shape(arguments: Sequence[str]) -> Any:
    return build_parser(arguments).parse_args([*arguments]).json_shape


def checked_lines(text: str, arguments: Sequence[str]) -> list[Any]:
    """Returns the documents that a command printed, one in a line; each must have the declared shape."""
    documents = [json.loads(line) for line in text.splitlines()]
    assert documents, "nothing was printed"
    for document in documents:
        assert mismatch(document, declared_shape(arguments)) is None
    return documents
