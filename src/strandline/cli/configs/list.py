"""`strandline configs list`: the resources that have settings of their own."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.configs.resources import kind_of
from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import show, table

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Lists the resources that have settings."
    parser.add_argument(
        "--type",
        choices=("topic", "broker", "broker-logger", "client-metrics", "group"),
        action="append",
        default=[],
        help="list only this type; repeat it for several",
    )
    add_connection(parser)
    add_json(parser, {"resources": [{"type": "text", "name": "text"}]})


def call(options: argparse.Namespace) -> int:
    return run(options, _list, "configs")


async def _list(admin: Admin, options: argparse.Namespace) -> int:
    from strandline.client.admin.configs import ResourceType

    types = [ResourceType[each.upper().replace("-", "_")] for each in options.type]
    found = [(kind_of(each), each.name) for each in sorted(await admin.list_config_resources(types))]
    if options.json:
        print_json({"resources": [{"type": kind, "name": name} for kind, name in found]})
    elif found:
        show(table(("TYPE", "NAME"), found))
    else:
        print("no such resources")
    return DONE
