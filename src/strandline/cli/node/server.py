"""`strandline server`: the options."""

from __future__ import annotations

import argparse

from strandline.cli import ctrl_c_ends_at_once


def add_arguments(server: argparse.ArgumentParser) -> None:
    server.description = (
        "Starts the node that a server.properties file describes, and runs until it is stopped."
    )
    server.add_argument(
        "--config", required=True, metavar="FILE", help="a file of settings with Kafka's property names"
    )
    add_log_options(server)


def add_log_options(
    parser: argparse.ArgumentParser, level: str | None = "info", level_help: str = "default: info"
) -> None:
    parser.add_argument(
        "--log-format", choices=("text", "json"), default="text", help="the format of log lines"
    )
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warn", "error"),
        default=level,
        help=f"the lowest level that is logged ({level_help})",
    )


def call(options: argparse.Namespace) -> int:
    with ctrl_c_ends_at_once():
        from strandline.cli.serving import server

    return server(options)
