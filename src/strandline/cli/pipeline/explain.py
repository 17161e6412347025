"""`strandline pipeline explain`: explains a spec."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from strandline.cli.output.document import add_json


def add_parser(actions: Any) -> argparse.ArgumentParser:
    """Adds the parser of this action and returns it."""
    parser: argparse.ArgumentParser = actions.add_parser(
        "explain",
        help="show the stages, topics and guarantees of a spec",
        description="Prints the stages with their columns, the topics, and which sinks are exactly once. No broker "
        "is asked.",
    )
    parser.add_argument("spec", metavar="SPEC", help="the pipeline's YAML file")
    parser.add_argument(
        "--no-spark", action="store_true", help="do not start Spark; the columns are left out"
    )
    add_json(
        parser,
        {
            "pipeline": "text",
            "brokers": "text",
            "trigger": "text",
            "checkpoint": "text",
            "commit_group": "text?",
            "spark": "text",
            "stages": [
                {"name": "text", "what": "text", "details": ["text"], "columns": {"<column>": "text"}}
            ],
            "queries": [
                {
                    "name": "text",
                    "promise": "text",
                    "mode?": "text",
                    "writes": [{"from": "text", "to": "text", "<other>": "any"}],
                    "<other>": "any",
                }
            ],
        },
    )
    return parser


def call(options: argparse.Namespace) -> int:
    """Runs the action and returns the exit status."""
    from strandline.pipeline.runtime.explain import explain, in_words
    from strandline.pipeline.runtime.session import session_of
    from strandline.pipeline.runtime.validation import analyse
    from strandline.pipeline.spec.reader import load
    from strandline.pipeline.spec.yaml_lines import SpecError

    try:
        spec = load(options.spec)
        if options.no_spark:
            explained = explain(spec)
        else:
            spark = session_of(spec)
            try:
                explained = explain(spec, analyse(spark, spec))
            finally:
                spark.stop()
    except SpecError as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(explained) if options.json else in_words(explained))
    return 0
