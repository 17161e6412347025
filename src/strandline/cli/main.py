"""The `strandline` command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from strandline import __version__
from strandline.cli import dlq


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
    up.add_argument(
        "--port", type=_port, default=9092, help="port to listen on; 0 takes a free one (default: 9092)"
    )
    up.add_argument(
        "--host", default="localhost", help="address to listen on and advertise (default: localhost)"
    )
    up.add_argument("--data", default="./strandline-data", help="data directory (default: ./strandline-data)")
    up.add_argument(
        "--ephemeral", action="store_true", help="keep data in a temporary directory, gone at the end"
    )
    up.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="any broker setting, by Kafka's name"
    )
    _add_log_options(up)

    server = commands.add_parser(
        "server", help="start a broker from a server.properties file", formatter_class=Formatter
    )
    server.add_argument("--config", required=True, metavar="FILE", help="settings by Kafka's property names")
    _add_log_options(server)

    docs = commands.add_parser(
        "docs", help="print the reference pages, or write them", formatter_class=Formatter
    )
    docs.add_argument("--write", metavar="DIRECTORY", help="write the pages there instead of printing them")
    letters = dlq.add_commands(commands, Formatter)
    return parser, {"up": up, "server": server, "docs": docs, **letters}


def _add_log_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--log-format", choices=("text", "json"), default="text", help="one line an event")
    parser.add_argument("--log-level", choices=("debug", "info", "warn", "error"), default="info")


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{port} is not a port: 0 to 65535 are")
    return port


def main(arguments: Sequence[str] | None = None) -> int:
    options = build_parser()[0].parse_args(arguments)
    match options.command:
        case "up":
            from strandline.cli.serving import up

            return up(options)
        case "server":
            from strandline.cli.serving import server

            return server(options)
        case "docs":
            from strandline.cli.docs import docs

            return docs(options)
        case "dlq":
            return dlq.dlq(options)
        case _:
            raise AssertionError(f"no such command: {options.command}")


if __name__ == "__main__":
    sys.exit(main())
