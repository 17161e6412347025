"""`strandline cluster wait`: waits until every replica is in sync, for example between two steps of a rolling
restart."""

from __future__ import annotations

import argparse
import asyncio
import math
import time
from typing import TYPE_CHECKING, Final

from strandline.cli.cluster.health import SHAPE, Health, as_json, lines_of, look
from strandline.cli.cluster.status import add_before_restart
from strandline.cli.connection import CONNECT_SECONDS_MAX, add_connection, admin_client, run_async
from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.failures import say_error
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.progress import Progress
from strandline.cli.output.text import note

if TYPE_CHECKING:
    from strandline.client import Admin

_LOOK_AGAIN_S: Final = 0.5
SUBJECTS: Final = ("cluster", "topics", "configs")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Waits until every partition has a leader and all its replicas are in sync, for example between two steps of "
        "a rolling restart. The exit code is 1 if that takes too long."
    )
    add_before_restart(parser)
    add_connection(parser, timeout_s=600.0)
    add_json(parser, SHAPE)


def call(options: argparse.Namespace) -> int:
    return run_async(lambda: _wait(options))


async def _wait(options: argparse.Namespace) -> int:
    admin = admin_client(options, SUBJECTS)
    await _connect(admin, options.timeout)
    try:
        with Progress() as progress:
            health = await wait_until_whole(admin, options.timeout, progress, options.before_restart)
    finally:
        await admin.close()
    if options.json:
        print_json(as_json(health))
    else:
        print("\n".join(lines_of(health, options.before_restart)))
    if not health.is_whole:
        say_error(f"not whole after {options.timeout:g} s")
    return DONE if health.is_whole else FAILED


async def _connect(admin: Admin, timeout_s: float) -> None:
    """Connects. All brokers may be away for a while: that is told, and waited for."""
    from strandline.client.errors import KafkaError

    first_s = min(timeout_s, CONNECT_SECONDS_MAX)
    try:
        await admin.start(timeout=first_s)
    except KafkaError as error:
        if not error.retriable or timeout_s <= first_s:
            raise
        note(f"{error}; trying again for {timeout_s - first_s:g} s")
        await admin.start(timeout=timeout_s - first_s)


async def wait_until_whole(
    admin: Admin,
    timeout_s: float,
    progress: Progress,
    before_restart_of: int | None = None,
    look_s_max: float = math.inf,
) -> Health:
    """Checks the cluster until all replicas are in sync or the time is over, and returns the last result. Raises
    KafkaError if there was none. A request that takes longer than `look_s_max` is made again."""
    from strandline.client.errors import KafkaError

    deadline = time.monotonic() + timeout_s
    while True:
        left_s = deadline - time.monotonic()
        try:
            health = await look(admin, before_restart_of, max(min(left_s, look_s_max), 1.0))
        except KafkaError as error:
            # A topic may be deleted between two requests, and a broker that is being restarted does not respond.
            if not error.retriable or left_s <= 0:
                raise
            progress.say(f"the cluster does not respond: {error}")
        else:
            if health.is_whole or left_s <= 0:
                return health
            left = len(health.under_replicated or health.without_leader or health.needs_node)
            progress.say(f"{left} partitions to wait for")
        await asyncio.sleep(_LOOK_AGAIN_S)
