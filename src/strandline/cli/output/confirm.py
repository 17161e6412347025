"""The question before something is destroyed."""

from __future__ import annotations

import argparse
import sys

from strandline.cli.output.text import note


def add_yes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask for confirmation")


def confirmed(options: argparse.Namespace, question: str) -> bool:
    """True if the person says yes, or has given --yes. False without a terminal, because nobody can be asked."""
    if options.yes:
        return True
    if not sys.stdin.isatty():
        note(f"strandline: {question} Nobody can be asked here: add --yes to do it.")
        return False
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    said = sys.stdin.readline().strip().lower() in ("y", "yes")
    if not said:
        note("Nothing was done.")
    return said
