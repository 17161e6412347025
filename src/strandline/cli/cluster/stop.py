"""`strandline stop`: stops the process that `up` or `server` runs in a data directory, in order."""

from __future__ import annotations

import argparse
import os
import signal
import time
from typing import Final

from strandline.cli.arguments import seconds
from strandline.cli.exit_codes import DONE, FAILED, NOT_FOUND
from strandline.cli.failures import CommandError, not_found
from strandline.cli.output.document import add_json, print_json

_LOOK_AGAIN_S: Final = 0.05


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Stops the broker or the cluster that `strandline up` runs in a data directory, or one node of the cluster, "
        "and waits for its end."
    )
    parser.add_argument(
        "--data",
        default="./strandline-data",
        metavar="DIRECTORY",
        help="the data directory (default: ./strandline-data)",
    )
    parser.add_argument("--node", type=int, metavar="N", help="stop only this node of `up --nodes`")
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=60.0,
        metavar="SECONDS",
        help="give up after this time (default: 60)",
    )
    add_json(parser, {"stopped": "number"})


def call(options: argparse.Namespace) -> int:
    from strandline.node.disk import RealDisk
    from strandline.storage import names
    from strandline.storage.data_directory import contents_of

    disk, data = RealDisk(), os.path.abspath(options.data)
    if not os.path.isdir(data):
        raise not_found(f"there is no directory {data}: name the one that `up` shows, with --data")
    where = data
    if options.node is not None:
        nodes = {each.node_id: each.path for each in contents_of(disk, data).all_nodes}
        if options.node not in nodes:
            raise not_found(f"{data} has no node {options.node}; its nodes: {_listed(nodes)}")
        where = nodes[options.node]
    holder = disk.lock_holder(f"{where}/{names.LOCK}")
    if not holder:
        what = data if options.node is None else f"node {options.node} of {data}"
        raise CommandError(f"nothing runs in {what}", NOT_FOUND)
    try:
        os.kill(holder, signal.SIGTERM)
    except PermissionError as error:
        raise CommandError(f"process {holder} belongs to somebody else: ask its owner") from error
    deadline = time.monotonic() + options.timeout
    while disk.lock_holder(f"{where}/{names.LOCK}") == holder:
        if time.monotonic() > deadline:
            raise CommandError(f"process {holder} has not ended within {options.timeout:g} s", FAILED)
        time.sleep(_LOOK_AGAIN_S)
    if options.json:
        print_json({"stopped": holder})
    else:
        print(f"process {holder} has stopped")
    return DONE


def _listed(nodes: dict[int, str]) -> str:
    return ", ".join(map(str, sorted(nodes))) or "none"
