"""The tour of docs/guides/command-line.md: its commands are run, and its output is compared or written again.

`python -m tests.system.cli.tour` writes the output of today's commands into the page.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from strandline.testing import running_broker

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "command-line.md"
BLOCK = re.compile(r"```console\n(.*?)```\n", re.DOTALL)


def blocks(text: str) -> Iterator[list[tuple[str, str]]]:
    """Returns the commands of each block with the output that the page shows."""
    for block in BLOCK.findall(text):
        parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
        yield list(zip(parts[1::2], parts[2::2], strict=True))


def commands(text: str) -> list[tuple[str, str]]:
    return [each for block in blocks(text) for each in block]


def run_all(lines: list[str]) -> list[str]:
    """Runs the commands one after another in a shell against a new broker, and returns their output."""
    with running_broker() as broker, tempfile.TemporaryDirectory() as home:
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "STRANDLINE_BOOTSTRAP_SERVERS": broker.bootstrap,
            "STRANDLINE_CONFIG": f"{home}/contexts.json",
        }
        return [
            subprocess.run(
                ["bash", "-c", line],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                text=True,
                timeout=60,
                cwd=home,
                env=environment,
                check=False,
            ).stdout
            for line in lines
        ]


def main() -> None:
    text = PAGE.read_text()
    outputs = iter(run_all([line for line, _ in commands(text)]))

    def rewritten(match: re.Match[str]) -> str:
        lines = [line for line, _ in next(iter(blocks(match.group(0))))]
        return "```console\n" + "".join(f"$ {line}\n{next(outputs)}" for line in lines) + "```\n"

    PAGE.write_text(BLOCK.sub(rewritten, text))


if __name__ == "__main__":
    main()
