"""A pipeline's spec: what the YAML file says, as values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from strandline.pipeline.document import Mistakes, Section, parse


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    name: str


def load(path: str | Path) -> Spec:
    """Raises SpecError with everything that is wrong."""
    mistakes = Mistakes(str(path))
    root = parse(Path(path).read_text(), mistakes)
    mistakes.check()
    if root is None:
        mistakes.add(1, "the spec is empty")
        mistakes.check()
    assert root is not None
    section = Section(root, "", mistakes)
    name = section.text("pipeline", required=True)
    mistakes.check()
    assert name is not None
    return Spec(name=str(name))
