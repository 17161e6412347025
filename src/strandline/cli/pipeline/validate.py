"""`strandline pipeline validate`: lists the mistakes in a spec, with their lines."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Final

from strandline.cli.output.document import add_json

_MISTAKES: Final = [{"line": "number?", "text": "text"}]


def add_parser(actions: Any) -> argparse.ArgumentParser:
    """Adds the parser of this action and returns it."""
    parser: argparse.ArgumentParser = actions.add_parser(
        "validate",
        help="find mistakes in a spec",
        description="Finds mistakes in a spec and prints each with its line. The file is read first, then brokers "
        "are asked for its topics, and Spark is started last, to check the SQL. The exit code is 1 if there is a "
        "mistake.",
    )
    parser.add_argument("spec", metavar="SPEC", help="the pipeline's YAML file")
    parser.add_argument("--no-brokers", action="store_true", help="do not ask brokers")
    parser.add_argument("--no-spark", action="store_true", help="do not start Spark; SQL is not checked")
    add_json(parser, {"spec": "text", "mistakes": _MISTAKES, "warnings": _MISTAKES})
    return parser


def call(options: argparse.Namespace) -> int:
    """Runs the action and returns the exit status."""
    from strandline.pipeline.runtime.validation import validate
    from strandline.pipeline.spec.reader import load
    from strandline.pipeline.spec.yaml_lines import SpecError

    try:
        warnings = validate(
            load(options.spec), with_brokers=not options.no_brokers, with_spark=not options.no_spark
        )
    except SpecError as error:
        if options.json:
            mistakes = [{"line": each.line, "text": each.text} for each in error.mistakes]
            print(json.dumps({"spec": options.spec, "mistakes": mistakes, "warnings": []}))
        else:
            print(error, file=sys.stderr)
        return 1
    if options.json:
        told = [{"line": each.line, "text": each.text} for each in warnings]
        print(json.dumps({"spec": options.spec, "mistakes": [], "warnings": told}))
    else:
        for each in warnings:
            print(f"warning: {each}", file=sys.stderr)
        print(f"{options.spec}: no mistakes")
    return 0
