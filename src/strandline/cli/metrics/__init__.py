"""`strandline metrics`: prints alert rules for Prometheus and a dashboard for Grafana."""

from __future__ import annotations

import argparse
import json
from importlib.resources import files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("rules", help="print alert rules for Prometheus")
    actions.add_parser("dashboard", help="print a dashboard for Grafana")


def call(options: argparse.Namespace) -> int:
    if options.action == "rules":
        print(rules(), end="")
    else:
        from strandline.cli.metrics.dashboard import dashboard

        print(json.dumps(dashboard(), indent=2))
    return 0


def rules() -> str:
    return files("strandline.cli.metrics").joinpath("rules.yml").read_text()
