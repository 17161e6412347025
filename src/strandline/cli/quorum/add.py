"""`strandline quorum add`: makes a controller a voter."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE
from strandline.cli.failures import not_found, usage
from strandline.cli.output.document import add_json, print_json

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Makes a controller a voter of the quorum. The controller must be running, formatted with "
        "--no-initial-controllers, and be an observer of the quorum. Its directory id is taken from the quorum if "
        "none is given."
    )
    parser.add_argument("node", type=int, metavar="NODE", help="the controller's node id")
    parser.add_argument(
        "--directory-id", metavar="ID", help="the id of its metadata directory, as in its meta.properties"
    )
    parser.add_argument(
        "--listener",
        required=True,
        metavar="NAME://HOST:PORT",
        help="its controller listener, with the address by which others reach it",
    )
    add_connection(parser)
    add_json(parser, {"node_id": "number", "directory_id": "text"})


def call(options: argparse.Namespace) -> int:
    name, separator, address = options.listener.partition("://")
    host, colon, port = address.rpartition(":")
    if not separator or not colon or not port.isdecimal():
        raise usage(f"--listener {options.listener}: write it as CONTROLLER://host:port")
    options.endpoint = (name, host, int(port))
    return run(options, _add, "cluster", "quorum")


async def _add(admin: Admin, options: argparse.Namespace) -> int:
    from strandline.base.ids import parse_uuid, uuid_text

    if options.directory_id is not None:
        try:
            directory_id = parse_uuid(options.directory_id)
        except ValueError as error:
            raise usage(f"--directory-id {options.directory_id} is not an id: give 22 characters") from error
    else:
        quorum = await admin.describe_quorum()
        found = [each for each in quorum.observers if each.replica_id == options.node]
        if not found:
            raise not_found(
                f"node {options.node} is not an observer of the quorum: start it, or give its --directory-id"
            )
        directory_id = found[0].directory_id
    await admin.add_raft_voter(options.node, directory_id, [options.endpoint])
    if options.json:
        print_json({"node_id": options.node, "directory_id": uuid_text(directory_id)})
    else:
        print(f"node {options.node} is a voter, directory {uuid_text(directory_id)}")
    return DONE
