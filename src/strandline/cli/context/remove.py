"""`strandline context remove`: deletes a context."""

from __future__ import annotations

import argparse

from strandline.cli import contexts
from strandline.cli.exit_codes import DONE
from strandline.cli.output.document import add_json, print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Deletes a context. The cluster itself is not affected."
    parser.add_argument("name", metavar="CONTEXT", help="the name of the context")
    add_json(parser, {"name": "text"})


def call(options: argparse.Namespace) -> int:
    known = contexts.load()
    known.settings(options.name)
    del known.by_name[options.name]
    if known.current == options.name:
        known.current = None
    known.save()
    if options.json:
        print_json({"name": options.name})
    else:
        print(f"context {options.name} is removed")
    return DONE
