"""`strandline mirror`: copies topics between clusters, and looks after such a mirror.

Without an action it runs the flows of a file. Each action is a module of this package and a line of ACTIONS.
"""

from __future__ import annotations

import argparse
from typing import Any, Final

from strandline.cli.mirror import failback, failover, pause, resume, run, status, verify

ACTIONS: Final[dict[str, Any]] = {
    "status": status,
    "pause": pause,
    "resume": resume,
    "failover": failover,
    "failback": failback,
    "verify": verify,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Copies topics between clusters by MirrorMaker 2's properties, exactly once, until Ctrl-C. Either side may be "
        "Strandline or Apache Kafka. Several processes with one file share the work."
    )
    run.add_arguments(parser)
    actions = parser.add_subparsers(dest="action", required=False, metavar="ACTION")
    for module in ACTIONS.values():
        module.add_parser(actions)


def call(options: argparse.Namespace) -> int:
    """Runs the flows, or an action, and returns the exit status."""
    from strandline.cli.exit_codes import USAGE
    from strandline.cli.failures import exit_code_of, say_error
    from strandline.client.errors import KafkaError
    from strandline.mirror.config.settings import MirrorConfigError

    try:
        status: int = ACTIONS.get(options.action, run).call(options)
    except MirrorConfigError as error:
        say_error(error)
        return USAGE
    except KafkaError as error:
        say_error(error)
        return exit_code_of(error)
    return status
