"""`strandline pipeline status`: shows the progress of a pipeline, from the state in its checkpoint."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from strandline.cli.output.document import add_json
from strandline.cli.pipeline.shapes import TOTALS_SHAPE


def add_parser(actions: Any) -> argparse.ArgumentParser:
    """Adds the parser of this action and returns it."""
    parser: argparse.ArgumentParser = actions.add_parser(
        "status",
        help="show the progress of a pipeline",
        description="Shows the state that a running pipeline keeps in its checkpoint. The exit code is 0 if the "
        "pipeline runs, is done or was stopped, and 1 if it failed, died or never ran.",
    )
    parser.add_argument("spec", metavar="SPEC", help="the pipeline's YAML file")
    add_json(
        parser,
        {
            "pipeline": "text",
            "state": "text",
            "pid?": "number",
            "began_at?": "text",
            "updated_at?": "text",
            "error?": "text",
            "queries?": {"<query>": TOTALS_SHAPE},
        },
    )
    return parser


def call(options: argparse.Namespace) -> int:
    """Runs the action and returns the exit status."""
    from strandline.pipeline.runtime.reporting import summary
    from strandline.pipeline.runtime.state import NotLocalError
    from strandline.pipeline.runtime.stop_request import status
    from strandline.pipeline.spec.reader import load
    from strandline.pipeline.spec.yaml_lines import SpecError

    try:
        state = status(load(options.spec))
    except (SpecError, NotLocalError) as error:
        print(error, file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(state))
    else:
        print(f"pipeline {state['pipeline']}: {state['state']}")
        if "updated_at" in state:
            print(f"  process {state['pid']}, since {state['began_at']}, last event {state['updated_at']}")
        if "error" in state:
            print(f"  {state['error']}")
        for line in summary(state.get("queries", {})):
            print(line)
    return 0 if state["state"] in ("running", "stopping", "stopped", "finished") else 1
