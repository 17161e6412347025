"""`strandline quorum remove`: removes a controller from the voters."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.failures import not_found
from strandline.cli.output.confirm import add_yes, confirmed
from strandline.cli.output.document import add_json, print_json

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Removes a controller from the voters of the quorum."
    parser.add_argument("node", type=int, metavar="NODE", help="the controller's node id")
    add_yes(parser)
    add_connection(parser)
    add_json(parser, {"node_id": "number", "directory_id": "text"})


def call(options: argparse.Namespace) -> int:
    return run(options, _remove, "cluster", "quorum")


async def _remove(admin: Admin, options: argparse.Namespace) -> int:
    from strandline.base.ids import uuid_text

    quorum = await admin.describe_quorum()
    found = [each for each in quorum.voters if each.replica_id == options.node]
    if not found:
        voters = ", ".join(str(each.replica_id) for each in quorum.voters)
        raise not_found(f"node {options.node} is not a voter; the voters are: {voters}")
    left = len(quorum.voters) - 1
    if not confirmed(
        options, f"Remove voter {options.node}? {left} will vote, {left - (left // 2 + 1)} may fail."
    ):
        return FAILED
    await admin.remove_raft_voter(options.node, found[0].directory_id)
    if options.json:
        print_json({"node_id": options.node, "directory_id": uuid_text(found[0].directory_id)})
    else:
        print(f"node {options.node} is no longer a voter")
    return DONE
