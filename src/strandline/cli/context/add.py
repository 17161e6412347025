"""`strandline context add`: stores the settings of a cluster under a name."""

from __future__ import annotations

import argparse

from strandline.cli import contexts
from strandline.cli.exit_codes import DONE
from strandline.cli.failures import usage
from strandline.cli.output.document import add_json, print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Stores the address and client settings of a cluster under a name. The first context is used at once."
    )
    parser.add_argument("name", metavar="NAME", help="the name of the context")
    parser.add_argument(
        "--bootstrap-server", "-b", required=True, metavar="HOST:PORT", help="addresses of the cluster"
    )
    parser.add_argument(
        "-X",
        dest="client_settings",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any client setting; repeat it for several",
    )
    add_json(parser, {"name": "text", "current": "flag", "file": "text"})


def call(options: argparse.Namespace) -> int:
    settings = {"bootstrap.servers": options.bootstrap_server}
    for pair in options.client_settings:
        key, equals, value = pair.partition("=")
        if not equals:
            raise usage(f"-X {pair}: write it as KEY=VALUE")
        settings[key.strip()] = value.strip()
    try:
        known = contexts.load()
        known.by_name[options.name] = settings
        known.current = known.current or options.name
        known.save()
    except OSError as error:
        raise usage(f"{contexts.path()} cannot be written: {error.strerror}") from error
    is_current = known.current == options.name
    if options.json:
        print_json({"name": options.name, "current": is_current, "file": str(contexts.path())})
    else:
        print(f"context {options.name} is stored" + (" and in use" if is_current else ""))
    return DONE
