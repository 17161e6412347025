"""`strandline format`: the options."""

from __future__ import annotations

import argparse

from strandline.cli.output.document import add_json


def add_arguments(format_: argparse.ArgumentParser) -> None:
    format_.description = (
        "Formats the log directories of a node with its cluster id and node id, once, before its start."
    )
    format_.add_argument("--config", required=True, metavar="FILE", help="the node's server.properties")
    format_.add_argument(
        "--cluster-id",
        metavar="ID",
        help="the cluster id, the same for every node of the cluster (default: a new one)",
    )
    voters = format_.add_mutually_exclusive_group()
    voters.add_argument(
        "--standalone",
        action="store_true",
        help="this controller begins a quorum, to which others can be added",
    )
    voters.add_argument(
        "--initial-controllers",
        metavar="LIST",
        help="the controllers that begin a quorum, as id@host:port:directory,...; the same on each of them",
    )
    voters.add_argument(
        "--no-initial-controllers",
        action="store_true",
        help="the quorum exists already, or other controllers begin it; this one can be added to it later",
    )
    format_.add_argument(
        "--ignore-formatted", action="store_true", help="skip directories that are formatted already"
    )
    format_.add_argument(
        "--add-scram",
        action="append",
        default=[],
        metavar="USER",
        help="a user of a new cluster, in the form of Kafka's tool: 'SCRAM-SHA-256=[name=alice,password=secret]'; "
        "password-file=PATH keeps the password out of the process list",
    )
    add_json(format_, {"cluster_id": "text", "node_id": "number", "formatted": ["text"]})


def call(options: argparse.Namespace) -> int:
    from strandline.cli.formatting import format_node

    return format_node(options)
