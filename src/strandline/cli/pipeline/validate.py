"""`strandline pipeline validate`: everything that is wrong with a spec, with its lines."""

from __future__ import annotations

import argparse
import sys
from typing import Any


def add_parser(actions: Any, formatter: type[argparse.HelpFormatter]) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        "validate",
        help="look for mistakes in a spec",
        description="Looks for mistakes in a spec and prints each with its line. Exits with 1 if there are any.",
        formatter_class=formatter,
    )
    parser.add_argument("spec", metavar="SPEC", help="the pipeline's YAML file")
    return parser


def call(options: argparse.Namespace) -> int:
    from strandline.pipeline.document import SpecError
    from strandline.pipeline.reading import load

    try:
        load(options.spec)
    except SpecError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{options.spec}: no mistakes")
    return 0
