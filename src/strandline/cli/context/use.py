"""`strandline context use`: chooses the context of commands that name no cluster."""

from __future__ import annotations

import argparse

from strandline.cli import contexts
from strandline.cli.exit_codes import DONE
from strandline.cli.output.document import add_json, print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Chooses the context for commands that name no cluster."
    parser.add_argument("name", metavar="CONTEXT", help="the name of the context")
    add_json(parser, {"name": "text"})


def call(options: argparse.Namespace) -> int:
    known = contexts.load()
    known.settings(options.name)
    known.current = options.name
    known.save()
    if options.json:
        print_json({"name": options.name})
    else:
        print(f"context {options.name} is in use")
    return DONE
