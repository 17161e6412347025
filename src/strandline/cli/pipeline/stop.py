"""`strandline pipeline stop`: ends a running pipeline after its current batch."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from strandline.cli.arguments import seconds
from strandline.cli.output.document import add_json


def add_parser(actions: Any) -> argparse.ArgumentParser:
    """Adds the parser of this action and returns it."""
    parser: argparse.ArgumentParser = actions.add_parser(
        "stop",
        help="end a running pipeline",
        description="Asks a running pipeline, through its checkpoint, to end after its current batch, and waits "
        "until it has ended. The exit code is 1 if it does not run or does not end in time.",
    )
    parser.add_argument("spec", metavar="SPEC", help="the pipeline's YAML file")
    parser.add_argument(
        "--timeout", type=seconds, default=300.0, metavar="SECONDS", help="how long to wait (default: 300)"
    )
    add_json(parser, {"pipeline": "text", "was_running": "flag", "has_ended": "flag"})
    return parser


def call(options: argparse.Namespace) -> int:
    """Runs the action and returns the exit status."""
    from strandline.pipeline.runtime.state import NotLocalError
    from strandline.pipeline.runtime.stop_request import stop
    from strandline.pipeline.spec.reader import load
    from strandline.pipeline.spec.yaml_lines import SpecError

    try:
        spec = load(options.spec)
        has_ended = stop(spec, options.timeout)
    except (SpecError, NotLocalError) as error:
        print(error, file=sys.stderr)
        return 1
    did = {
        True: "has ended",
        False: f"has not ended within {options.timeout:g} s; the request to stop is still there",
        None: "does not run",
    }[has_ended]
    if options.json:
        print(
            json.dumps(
                {"pipeline": spec.name, "was_running": has_ended is not None, "has_ended": bool(has_ended)}
            )
        )
    else:
        print(f"pipeline {spec.name} {did}", file=sys.stdout if has_ended else sys.stderr)
    return 0 if has_ended else 1
