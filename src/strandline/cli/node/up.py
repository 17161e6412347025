"""`strandline up`: the options. One broker is started by `serving`, several nodes by `clusters`."""

from __future__ import annotations

import argparse

from strandline.cli import ctrl_c_ends_at_once
from strandline.cli.node.server import add_log_options
from strandline.cli.presets import add_preset

_NODES_MAX = 15


def add_arguments(up: argparse.ArgumentParser) -> None:
    up.description = "Starts a broker, or a cluster of several, on this machine, and runs until Ctrl-C."
    up.add_argument(
        "--port", type=_port, default=9092, help="the port to listen on; 0 takes a free one (default: 9092)"
    )
    up.add_argument(
        "--host", default="localhost", help="the address to listen on and to advertise (default: localhost)"
    )
    up.add_argument(
        "--advertise",
        metavar="HOST",
        help="the name or address by which clients reach this machine (default: --host); needed for --host 0.0.0.0 "
        "and ::",
    )
    up.add_argument(
        "--metrics-port",
        type=_port,
        help="the port of the first node's /metrics; other nodes take the next ports (default: 9404 or the next free "
        "port; with --port 0, free ports)",
    )
    up.add_argument(
        "--registry-port",
        type=_port,
        help="the port of the schema registry (default: 8081 or the next free port; with --port 0, a free one)",
    )
    up.add_argument(
        "--faults-port",
        type=_port,
        help="serve an HTTP API for setting faults in tests on this port of 127.0.0.1; 0 takes a free one (default: "
        "none)",
    )
    up.add_argument("--no-registry", action="store_true", help="start no schema registry")
    place = up.add_mutually_exclusive_group()
    place.add_argument(
        "--data",
        default="./strandline-data",
        help="the data directory of the broker or the cluster (default: ./strandline-data)",
    )
    place.add_argument(
        "--ephemeral",
        action="store_true",
        help="keep data in a temporary directory, which is deleted at the end",
    )
    up.add_argument(
        "--nodes",
        type=_nodes,
        default=1,
        metavar="N",
        help="start a cluster of N processes (default: one broker)",
    )
    up.add_argument(
        "--secure",
        action="store_true",
        help="use TLS and SCRAM logins on every listener; certificates, a user and the clients' settings are made "
        "beside the data directory (needs the extra `security`)",
    )
    add_preset(up, "a group of broker settings and topic defaults")
    up.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any broker setting, by Kafka's name; repeat it for several",
    )
    add_log_options(
        up,
        level=None,
        level_help="default: warning while it starts, then info",
    )


def call(options: argparse.Namespace) -> int:
    if options.nodes > 1:
        with ctrl_c_ends_at_once():
            from strandline.cli.clusters import up_cluster

        return up_cluster(options)
    with ctrl_c_ends_at_once():
        from strandline.cli.serving import up

    return up(options)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port: give a number from 0 to 65535")
    return int(text)


def _nodes(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _NODES_MAX:
        raise argparse.ArgumentTypeError(f"{text} nodes: 1 to {_NODES_MAX} can be started on one machine")
    return int(text)
