"""Reads Markdown as GitHub does, where Python-Markdown differs: a list may follow a paragraph without a blank line."""

from __future__ import annotations

import re
from typing import Any

_ITEM = re.compile(r"(?:[-*]|\d+\.) ")


def on_page_markdown(markdown: str, **_: Any) -> str:
    lines: list[str] = []
    is_code = False
    for line in markdown.splitlines():
        before = lines[-1] if lines else ""
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif (
            not is_code
            and _ITEM.match(line)
            and before.strip()
            and not before.startswith(" ")
            and not _ITEM.match(before)
        ):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)
