"""`strandline server`: the options."""

from __future__ import annotations

import argparse


def add_arguments(server: argparse.ArgumentParser) -> None:
    server.description = "Starts the node that a server.properties file describes, and stays."
    server.add_argument("--config", required=True, metavar="FILE", help="settings by Kafka's property names")
    add_log_options(server)


def add_log_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--log-format", choices=("text", "json"), default="text", help="one line an event")
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warn", "error"),
        default="info",
        help="the least important events that are logged (default: info)",
    )


def call(options: argparse.Namespace) -> int:
    from strandline.cli.serving import server

    return server(options)
