"""`strandline lab list`: the scenarios."""

from __future__ import annotations

import argparse
from typing import Final

from strandline.cli.exit_codes import DONE
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import show, table

SHAPE: Final = {"scenarios": [{"name": "text", "title": "text", "source": "text"}]}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Lists the scenarios of the failure lab."
    add_json(parser, SHAPE)


def call(options: argparse.Namespace) -> int:
    from strandline.lab.scenario import load, names

    found = [load(name) for name in names()]
    if options.json:
        rows = [{"name": each.name, "title": each.title, "source": each.source} for each in found]
        print_json({"scenarios": rows})
    else:
        show(table(("SCENARIO", "FAILURE"), [(each.name, each.title) for each in found]))
    return DONE
