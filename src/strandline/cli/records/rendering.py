"""Writes records as bytes for stdout."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from strandline.cli.failures import usage
from strandline.cli.output.text import moment
from strandline.cli.records.rows import header_bytes, to_row

if TYPE_CHECKING:
    from strandline.client.consumer.record_decoder import ConsumerRecord

Renderer = Callable[[list["ConsumerRecord"]], bytes]

_FIELDS: Final[dict[str, Callable[[ConsumerRecord], bytes]]] = {
    "t": lambda each: each.topic.encode(),
    "p": lambda each: str(each.partition).encode(),
    "o": lambda each: str(each.offset).encode(),
    "T": lambda each: moment(each.timestamp).encode(),
    "k": lambda each: each.key or b"",
    "v": lambda each: each.value or b"",
    "S": lambda each: str(-1 if each.value is None else len(each.value)).encode(),
    "h": lambda each: b",".join(header_bytes(*header) for header in each.headers),
    "%": lambda each: b"%",
}


def renderer_of(options: argparse.Namespace) -> Renderer:
    """Returns a function that formats a record as the options say. Without options it prints values, one on each line.
    A null key or value is an empty text."""
    if options.json:
        return _rows
    if options.format is not None:
        return _formatted(options.format)
    if options.keys:
        return _formatted("%k\\t%v\\n")
    if options.raw:
        return lambda records: b"".join([each.value for each in records if each.value is not None])
    return _lines


def _rows(records: list[ConsumerRecord]) -> bytes:
    return "".join([json.dumps(to_row(each)) + "\n" for each in records]).encode()


def _lines(records: list[ConsumerRecord]) -> bytes:
    return b"\n".join([each.value or b"" for each in records]) + b"\n"


def _formatted(text: str) -> Renderer:
    unescaped = text.replace("\\n", "\n").replace("\\t", "\t").replace("\\0", "\0")
    parts: list[bytes | Callable[[ConsumerRecord], bytes]] = []
    for part in re.split(r"(%.)", unescaped, flags=re.DOTALL):
        if part.startswith("%"):
            if part[1:] not in _FIELDS:
                raise usage(f"--format: {part} is not one of {' '.join('%' + each for each in _FIELDS)}")
            parts.append(_FIELDS[part[1:]])
        elif part:
            parts.append(part.encode())

    def render(records: list[ConsumerRecord]) -> bytes:
        return b"".join(
            [part if isinstance(part, bytes) else part(each) for each in records for part in parts]
        )

    return render
