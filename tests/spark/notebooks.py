"""Runs a notebook's cells as a kernel does, in one namespace, and compares what they print with what the file has.

`python -m tests.spark.notebooks NOTEBOOK` ends with status 1 and a report if a cell fails or prints something else.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell of code, and what it printed when the notebook was stored."""

    source: str
    printed: str


def cells_of(notebook: Path) -> list[Cell]:
    stored = json.loads(notebook.read_text())
    found = []
    for cell in stored["cells"]:
        if cell["cell_type"] != "code":
            continue
        strange = [each for each in cell["outputs"] if each.get("name") != "stdout"]
        assert strange == [], f"{notebook.name}: only printed text is compared, and a cell has {strange}"
        printed = "".join("".join(each["text"]) for each in cell["outputs"])
        found.append(Cell(source="".join(cell["source"]), printed=printed))
    return found


def differences(notebook: Path) -> list[str]:
    """Runs the cells in order; what differs from the stored output. Errors of cells pass."""
    names: dict[str, Any] = {"__name__": "__main__"}
    found = []
    for number, cell in enumerate(cells_of(notebook), 1):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(cell.source, f"{notebook.name}, cell {number}", "exec"), names)
        if output.getvalue() != cell.printed:
            found.append(f"cell {number} printed\n{output.getvalue()}\nand the notebook has\n{cell.printed}")
    return found


if __name__ == "__main__":
    report = differences(Path(sys.argv[1]))
    print("\n".join(report))
    sys.exit(1 if report else 0)
