"""The command line of `strandline`: its commands and their options."""

from __future__ import annotations

import argparse

from strandline import __version__
from strandline.cli import dlq, health, logs, pipeline, sim

_NODES_MAX = 15


def build_parser() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """The parser, and those of its commands by name."""

    class Formatter(argparse.HelpFormatter):
        """As wide on every machine, so that the reference page does not depend on a terminal."""

        def __init__(self, prog: str) -> None:
            super().__init__(prog, width=100)

    parser = argparse.ArgumentParser(
        prog="strandline",
        description="A commit log that speaks Kafka's protocol, without a JVM.",
        formatter_class=Formatter,
    )
    parser.add_argument("--version", action="version", version=f"strandline {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    up = commands.add_parser("up", help="start a broker on this machine and stay", formatter_class=Formatter)
    _add_up_options(up)
    _add_log_options(up)

    server = commands.add_parser(
        "server", help="start a broker from a server.properties file", formatter_class=Formatter
    )
    server.add_argument("--config", required=True, metavar="FILE", help="settings by Kafka's property names")
    _add_log_options(server)

    format_ = commands.add_parser(
        "format", help="prepare the log directories of a node of a cluster", formatter_class=Formatter
    )
    format_.add_argument("--config", required=True, metavar="FILE", help="the node's server.properties")
    format_.add_argument(
        "--cluster-id", metavar="ID", help="the same for every node of the cluster; a new one if not given"
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
        help="the quorum exists, or others begin it; this controller can be added to it",
    )
    format_.add_argument(
        "--ignore-formatted", action="store_true", help="leave directories that are formatted as they are"
    )
    format_.add_argument(
        "--add-scram",
        action="append",
        default=[],
        metavar="USER",
        help="a user of a new cluster: 'SCRAM-SHA-256=[name=alice,password=secret]', as Kafka's tool takes it; "
        "password-file=PATH keeps the password out of the process list",
    )
    format_.add_argument("--json", action="store_true", help="say what was done as JSON")

    docs = commands.add_parser(
        "docs", help="print the reference pages, or write them", formatter_class=Formatter
    )
    docs.add_argument("--write", metavar="DIRECTORY", help="write the pages there instead of printing them")
    more = health.add_commands(commands, Formatter) | logs.add_commands(commands, Formatter)
    more |= dlq.add_commands(commands, Formatter) | sim.add_commands(commands, Formatter)
    more |= pipeline.add_commands(commands, Formatter)
    return parser, {"up": up, "server": server, "format": format_, "docs": docs, **more}


def _add_up_options(up: argparse.ArgumentParser) -> None:
    up.add_argument(
        "--port", type=_port, default=9092, help="port to listen on; 0 takes a free one (default: 9092)"
    )
    up.add_argument(
        "--host", default="localhost", help="address to listen on and advertise (default: localhost)"
    )
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
        "--set", action="append", default=[], metavar="KEY=VALUE", help="any broker setting, by Kafka's name"
    )


def _add_log_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--log-format", choices=("text", "json"), default="text", help="one line an event")
    parser.add_argument("--log-level", choices=("debug", "info", "warn", "error"), default="info")


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port: a number from 0 to 65535 is")
    return int(text)


def _nodes(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _NODES_MAX:
        raise argparse.ArgumentTypeError(f"{text} nodes: 1 to {_NODES_MAX} can be started on one machine")
    return int(text)
