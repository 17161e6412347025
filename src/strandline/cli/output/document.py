"""JSON for programs: each command prints one object, whose shape is declared beside the command and shown in its help.
A shape is written like the document. "text", "number" and "flag" stand for values, with "?" after them for null too,
and "any" for every value. A list has one shape for all its elements. A key with "?" after it may be missing. A key in
angle brackets, such as "<topic>", stands for all keys without a name in the shape.
"""

from __future__ import annotations

import argparse
import json
from typing import Any, Final

_KINDS: Final[dict[str, tuple[type, ...]]] = {"text": (str,), "number": (int, float), "flag": (bool,)}


def add_json(parser: argparse.ArgumentParser, shape: Any, *, lines: bool = False) -> None:
    """Adds `--json` to a command, and the shape of what it prints to its help."""
    what = "a JSON object for each" if lines else "one JSON object"
    parser.add_argument("--json", action="store_true", help=f"print {what}, with the shape below")
    told = f"JSON: {json.dumps(shape)}"
    parser.epilog = f"{parser.epilog}\n{told}" if parser.epilog else told
    parser.set_defaults(json_shape=shape)


def print_json(document: Any) -> None:
    print(json.dumps(document))


def mismatch(document: Any, shape: Any, where: str = "$") -> str | None:
    """Returns a sentence about the first place where a document differs from a shape; None if it does not."""
    if isinstance(shape, str):
        kind = shape.removesuffix("?")
        if kind == "any" or (document is None and shape.endswith("?")):
            return None
        is_kind = isinstance(document, _KINDS[kind]) and isinstance(document, bool) == (kind == "flag")
        return None if is_kind else f"{where} is {document!r}, not {shape}"
    if isinstance(shape, list):
        if not isinstance(document, list):
            return f"{where} is {document!r}, not a list"
        found = (mismatch(each, shape[0], f"{where}[{i}]") for i, each in enumerate(document))
        return next((text for text in found if text), None)
    if not isinstance(document, dict):
        return f"{where} is {document!r}, not an object"
    named = {key.removesuffix("?"): value for key, value in shape.items() if not key.startswith("<")}
    others = next((value for key, value in shape.items() if key.startswith("<")), None)
    missing = {key for key in shape if key in named} - set(document)
    if missing or (others is None and not set(document) <= set(named)):
        return f"{where} has the keys {sorted(document)}, not {sorted(shape)}"
    found = (mismatch(value, named.get(key, others), f"{where}.{key}") for key, value in document.items())
    return next((text for text in found if text), None)
