"""`strandline up`: the options. One broker is started by `serving`, several nodes by `clusters`."""

from __future__ import annotations

import argparse

from strandline.cli import ctrl_c_ends_at_once
from strandline.cli.node.server import add_log_options
from strandline.cli.presets import add_preset

_NODES_MAX = 15


def add_arguments(up: argparse.ArgumentParser) -> None:
    up.description = "Starts a broker, or a cluster of several, on this machine and stays until Ctrl-C."
    up.add_argument(
        "--port", type=_port, default=9092, help="port to listen on; 0 takes a free one (default: 9092)"
    )
    up.add_argument(
        "--host", default="localhost", help="address to listen on and advertise (default: localhost)"
    )
    up.add_argument(
        "--advertise",
        metavar="HOST",
        help="name or address by which clients reach this machine (default: --host); --host 0.0.0.0 and :: need it",
    )
    up.add_argument(
        "--metrics-port",
        type=_port,
        help="port of the first node's /metrics; others have the next ones (default: 9404 or the next that is free; "
        "with --port 0, free ones)",
    )
    up.add_argument(
        "--registry-port",
        type=_port,
        help="port of the schema registry (default: 8081 or the next that is free; with --port 0, a free one)",
    )
    up.add_argument(
        "--faults-port",
        type=_port,
        help="serve an API on this port of 127.0.0.1 by which tests set faults; 0 takes a free one (default: none)",
    )
    up.add_argument("--no-registry", action="store_true", help="start no schema registry")
    place = up.add_mutually_exclusive_group()
    place.add_argument(
        "--data",
        default="./strandline-data",
        help="data directory, of one broker or of one cluster (default: ./strandline-data)",
    )
    place.add_argument(
        "--ephemeral", action="store_true", help="keep data in a temporary directory, gone at the end"
    )
    up.add_argument(
        "--nodes", type=_nodes, default=1, metavar="N", help="a cluster of N processes (default: one broker)"
    )
    up.add_argument(
        "--secure",
        action="store_true",
        help="TLS and a login by SCRAM on every listener: makes certificates, a user and the clients' settings "
        "beside the data directory (needs the extra `security`)",
    )
    add_preset(up, "settings of brokers that belong together, and defaults of topics")
    up.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="any broker setting, by Kafka's name"
    )
    add_log_options(
        up,
        level=None,
        level_help="while it starts only warnings are logged, then info, unless a level is given",
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
