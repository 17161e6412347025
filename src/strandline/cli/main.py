"""The `strandline` command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from strandline.cli import dlq, health, logs, pipeline, sim
from strandline.cli.parser import build_parser

# What a shell calls a command that SIGINT ended.
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        try:
            return _run(build_parser()[0].parse_args(arguments))
        finally:
            print(
                end="", flush=True
            )  # what was printed is written here and not later, when nobody can be told
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:  # whoever reads has seen enough, as `head` does
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())  # for what is still to be written
        os.close(nowhere)
        return 0


def _run(options: argparse.Namespace) -> int:
    match options.command:
        case "up" if options.nodes > 1:
            from strandline.cli.clusters import up_cluster

            return up_cluster(options)
        case "up":
            from strandline.cli.serving import up

            return up(options)
        case "server":
            from strandline.cli.serving import server

            return server(options)
        case "format":
            from strandline.cli.formatting import format_node

            return format_node(options)
        case "docs":
            from strandline.cli.docs import docs

            return docs(options)
        case "cluster":
            return health.cluster(options)
        case "log":
            return logs.log(options)
        case "dlq":
            return dlq.dlq(options)
        case "sim":
            return sim.sim(options)
        case "pipeline":
            return pipeline.pipeline(options)
        case _:
            raise AssertionError(f"no such command: {options.command}")


if __name__ == "__main__":
    sys.exit(main())
