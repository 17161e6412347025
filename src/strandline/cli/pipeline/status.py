"""`strandline pipeline status`: how far a pipeline is, from the state in its checkpoint."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any


def add_parser(actions: Any, formatter: type[argparse.HelpFormatter]) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        "status",
        help="say how far a pipeline is",
        description="Reads the state that a running pipeline keeps in its checkpoint. Exits with 0 if it runs, is done "
        "or was stopped, and with 1 if it failed, died, or never ran.",
        formatter_class=formatter,
    )
    parser.add_argument("spec", metavar="SPEC", help="the pipeline's YAML file")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    return parser


def call(options: argparse.Namespace) -> int:
    from strandline.pipeline.run.reporting import summary
    from strandline.pipeline.run.state import NotLocalError
    from strandline.pipeline.run.stop_request import status
    from strandline.pipeline.spec.reader import load
    from strandline.pipeline.spec.yaml_lines import SpecError

    try:
        found = status(load(options.spec))
    except (SpecError, NotLocalError) as error:
        print(error, file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(found))
    else:
        print(f"pipeline {found['pipeline']}: {found['state']}")
        if "updated_at" in found:
            print(f"  process {found['pid']}, since {found['began_at']}, last event {found['updated_at']}")
        if "error" in found:
            print(f"  {found['error']}")
        for line in summary(found.get("queries", {})):
            print(line)
    return 0 if found["state"] in ("running", "stopping", "stopped", "finished") else 1
