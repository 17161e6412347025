"""Every command of `strandline`, with one line of help, and the module that it is in.

Nothing is imported here: a command's module is loaded when the command is typed. Such a module offers
`add_arguments(parser)`, which declares its options, and `call(options)`, which returns the exit code (`exit_codes`).
Its own heavy imports belong into functions, so that `--help` is quick. A module that has actions of its own adds them
to its parser with `add_subparsers`.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Command(NamedTuple):
    """A command: its line of help, and its module below `strandline.cli`."""

    help: str
    module: str


class Group(NamedTuple):
    """Commands under one name, such as `topics`."""

    help: str
    actions: dict[str, Command]


COMMANDS: Final[dict[str, Command | Group]] = {
    "up": Command("start a broker on this machine and stay", "node.up"),
    "server": Command("start a broker from a server.properties file", "node.server"),
    "format": Command("prepare the log directories of a node of a cluster", "node.format"),
    "certs": Command("make certificates for development", "node.certs"),
    "cluster": Command("see whether a cluster is whole, or wait for it", "health"),
    "log": Command("look into logs, and repair them", "logs"),
    "dlq": Command("work with dead letters", "dlq"),
    "pipeline": Command("run pipelines on Spark", "pipeline"),
    "sim": Command("simulate clusters under faults", "sim"),
    "docs": Command("print the reference pages, or write them", "docs"),
}
