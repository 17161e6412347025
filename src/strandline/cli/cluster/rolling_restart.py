"""`strandline rolling-restart`: restarts brokers one after the other, each when all in-sync sets are complete."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import subprocess
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from strandline.cli.arguments import seconds
from strandline.cli.cluster.control import NoControlError, ask, is_there
from strandline.cli.cluster.wait import SUBJECTS, wait_until_whole
from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE, FAILED
from strandline.cli.failures import CommandError, exit_code_of, not_found, usage
from strandline.cli.output.confirm import add_yes, confirmed
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.progress import Progress
from strandline.cli.output.text import note

if TYPE_CHECKING:
    from strandline.client import Admin
    from strandline.client.net.connections import Node

T = TypeVar("T")

_LOOK_S_MAX: Final = 30.0  # a request that is not responded to is made again
_UP_CHECK_S: Final = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Restarts the brokers of a cluster one after the other. Before each restart it waits until every replica is "
        "in sync and all partitions can be written without that broker. After each restart it waits until the broker "
        "is back and all replicas are in sync again. The active controller is restarted last. The nodes of `up "
        "--nodes` are restarted by that process, others by --command."
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--data",
        default="./strandline-data",
        metavar="DIRECTORY",
        help="the directory of the `up --nodes` that runs them (default: ./strandline-data)",
    )
    how.add_argument(
        "--command",
        metavar="COMMAND",
        help="the command that restarts a broker; {host}, {port}, {id} and {rack} are filled in, as in 'ssh {host} "
        "systemctl restart strandline'",
    )
    parser.add_argument(
        "--node",
        type=int,
        action="append",
        metavar="N",
        help="restart only this broker; repeat it for several",
    )
    parser.add_argument(
        "--wait",
        type=seconds,
        default=600.0,
        metavar="SECONDS",
        help="the longest wait for complete in-sync sets, each time (default: 600)",
    )
    add_yes(parser)
    add_connection(parser)
    add_json(parser, {"restarted": ["number"], "failed": "number?", "why": "text?"})


def call(options: argparse.Namespace) -> int:
    if options.command is not None and not {"{host}", "{id}", "{port}"} & set(_fields(options.command)):
        raise usage("--command: it must name the broker, by {host}, {port} or {id}")
    return run(options, _restart, *SUBJECTS)


def _fields(command: str) -> list[str]:
    return [f"{{{each.partition('}')[0]}}}" for each in command.split("{")[1:]]


async def _restart(admin: Admin, options: argparse.Namespace) -> int:
    from strandline.client.errors import KafkaError

    brokers = await _in_order(admin, options.node)
    order = ", ".join(str(each.node_id) for each in brokers)
    if not confirmed(options, f"Restart {len(brokers)} brokers one after the other: {order}?"):
        return FAILED
    restarted: list[int] = []
    for broker in brokers:
        try:
            await _restart_one(admin, broker, options)
        except (CommandError, RuntimeError, KafkaError) as error:
            if options.json:
                print_json({"restarted": restarted, "failed": broker.node_id, "why": str(error)})
            done = f"; restarted before it: {', '.join(map(str, restarted))}" if restarted else ""
            code = exit_code_of(error) if isinstance(error, KafkaError) else FAILED
            raise CommandError(f"stopped at broker {broker.node_id}: {error}{done}", code) from error
        restarted.append(broker.node_id)
    if options.json:
        print_json({"restarted": restarted, "failed": None, "why": None})
    else:
        print(f"{len(restarted)} brokers restarted, every replica is in sync")
    return DONE


async def _in_order(admin: Admin, only: list[int] | None) -> list[Node]:
    """Returns the brokers, the active controller last: each election of controllers costs time."""
    brokers = {each.node_id: each for each in (await admin.describe_cluster()).nodes}
    missing = [each for each in only or () if each not in brokers]
    if missing:
        raise not_found(f"there is no broker {missing[0]}: {', '.join(map(str, sorted(brokers)))} are there")
    leader = (await admin.describe_quorum()).leader_id
    wanted = sorted(only or brokers, key=lambda each: (each == leader, each))
    return [brokers[each] for each in wanted]


async def _restart_one(admin: Admin, broker: Node, options: argparse.Namespace) -> None:
    with Progress() as progress:
        progress.say(f"broker {broker.node_id}: waiting for whole in-sync sets")
        waiting = wait_until_whole(admin, options.wait, progress, broker.node_id, _LOOK_S_MAX)
        health = await _while_up_runs(waiting, options)
        if not health.is_whole:
            raise CommandError(f"not every replica is in sync after {options.wait:g} s; it was not restarted")
        began = time.monotonic()
        progress.say(f"broker {broker.node_id}: restarting")
        await asyncio.to_thread(_do, broker, options)
        await _while_up_runs(_wait_until_back(admin, broker.node_id, options.wait, progress), options)
        waiting = wait_until_whole(admin, options.wait, progress, look_s_max=_LOOK_S_MAX)
        health = await _while_up_runs(waiting, options)
        if not health.is_whole:
            raise CommandError(f"not every replica is in sync {options.wait:g} s after its restart")
    note(f"broker {broker.node_id} restarted, in-sync sets whole after {time.monotonic() - began:.1f} s")


async def _while_up_runs(work: Coroutine[Any, Any, T], options: argparse.Namespace) -> T:
    """Returns the result of `work`. Raises CommandError as soon as the `up` that restarts the brokers has ended: its
    brokers end with it, and would be waited for in vain."""
    if options.command is not None:
        return await work
    home = Path(options.data).absolute()
    task = asyncio.create_task(work)
    try:
        while not (await asyncio.wait({task}, timeout=_UP_CHECK_S))[0]:
            if not await asyncio.to_thread(is_there, home):
                raise _without_up(NoControlError(f"no `strandline up --nodes` runs in {home}"))
        return task.result()
    finally:
        task.cancel()
        await asyncio.wait({task})


def _without_up(error: NoControlError) -> CommandError:
    return CommandError(
        f"{error}: if it has ended, start it again; otherwise name its directory with --data, or say how to restart a "
        "broker with --command"
    )


def _do(broker: Node, options: argparse.Namespace) -> None:
    if options.command is None:
        try:
            ask(Path(options.data).absolute(), "restart", broker.node_id, options.wait)
        except NoControlError as error:
            raise _without_up(error) from error
        return
    fields: dict[str, Any] = {"id": broker.node_id, "host": broker.host, "port": broker.port}
    text = options.command
    for name, value in {**fields, "rack": broker.rack or ""}.items():
        text = text.replace(f"{{{name}}}", shlex.quote(str(value)))
    try:
        done = subprocess.run(text, shell=True, check=False, timeout=options.wait)
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"`{text}` did not end within {options.wait:g} s") from error
    if done.returncode:
        raise CommandError(f"`{text}` ended with {done.returncode}")


async def _wait_until_back(admin: Admin, node_id: int, seconds_max: float, progress: Progress) -> None:
    """Waits until the broker is registered with the controllers and not fenced."""
    from strandline.client.errors import KafkaError

    deadline = time.monotonic() + seconds_max
    while True:
        try:
            cluster = await admin.describe_cluster(include_fenced=True, timeout=5.0)
            if node_id in {each.node_id for each in cluster.nodes} and node_id not in cluster.fenced:
                return
            progress.say(f"broker {node_id} is not back yet")
        except KafkaError as error:
            if not error.retriable:
                raise
            progress.say(f"broker {node_id} is not back yet: {error}")
        if time.monotonic() > deadline:
            raise CommandError(f"broker {node_id} is not back after {seconds_max:g} s: see its log")
        await asyncio.sleep(0.2)
