"""Connects a command with a cluster: the options of the address, the client settings, the client, and errors as
sentences with an exit code.

Settings come from, the strongest first: `-X key=value`, `--bootstrap-server`, `--command-config FILE`, the context that
`--context` or STRANDLINE_CONTEXT names, STRANDLINE_BOOTSTRAP_SERVERS, the context in use (`strandline context use`),
localhost:9092. An address without `--context` uses no context, so that the credentials of one cluster are not sent to
another.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from strandline.cli import contexts
from strandline.cli.arguments import seconds
from strandline.cli.failures import exit_code_of, say_error, usage

if TYPE_CHECKING:
    from strandline.client import Admin

DEFAULT_BOOTSTRAP: Final = "localhost:9092"
# Long enough for a broker that is being restarted, short enough for a person who has mistyped the address.
CONNECT_SECONDS_MAX: Final = 3.0
# The classes of admin calls by subject. A command loads only the classes that it uses, because loading each takes time.
_SUBJECTS: Final = {
    "topics": "TopicAdmin",
    "configs": "ConfigAdmin",
    "groups": "GroupAdmin",
    "cluster": "ClusterAdmin",
    "quorum": "QuorumAdmin",
    "producers": "ProducerAdmin",
    "access": "AccessAdmin",
    "tokens": "TokenAdmin",
}


Work = Callable[["Admin", argparse.Namespace], Awaitable[int]]


def add_connection(parser: argparse.ArgumentParser, *, timeout_s: float = 30.0) -> None:
    """Adds the options that name the cluster."""
    group = parser.add_argument_group("cluster")
    group.add_argument(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT",
        help=f"addresses of the cluster, with commas between them (default: {DEFAULT_BOOTSTRAP}, or the context's)",
    )
    group.add_argument("--context", metavar="NAME", help="use the settings of this context")
    group.add_argument(
        "-X",
        dest="client_settings",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any client setting by Kafka's name; repeat it for several",
    )
    group.add_argument("--command-config", metavar="FILE", help="a .properties file with client settings")
    group.add_argument(
        "--timeout",
        type=seconds,
        default=timeout_s,
        metavar="SECONDS",
        help=f"the timeout of each call (default: {timeout_s:g})",
    )


def settings_of(options: argparse.Namespace, kind: str = "admin") -> dict[str, str]:
    """Returns the client settings from the options, the environment and the context, for a kind of client: "admin",
    "producer" or "consumer". A setting that only another kind of client has is left out."""
    from strandline.client.config.kinds import is_of_another_kind

    found = _context_settings(options)
    if options.command_config is not None:
        found |= _file_settings(options.command_config)
    if options.bootstrap_server is not None:
        found["bootstrap.servers"] = options.bootstrap_server
    for pair in options.client_settings:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise usage(f"-X {pair}: write it as KEY=VALUE, such as -X client.id=me")
        found[key.strip()] = value.strip()
    found.setdefault("bootstrap.servers", DEFAULT_BOOTSTRAP)
    found.setdefault("client.id", "strandline-cli")
    return {key: value for key, value in found.items() if not is_of_another_kind(key, kind)}


def _context_settings(options: argparse.Namespace) -> dict[str, str]:
    named = options.context or os.environ.get("STRANDLINE_CONTEXT")
    if named:
        return contexts.load().settings(named)
    if options.bootstrap_server is not None:
        return {}
    address = os.environ.get("STRANDLINE_BOOTSTRAP_SERVERS")
    if address:
        return {"bootstrap.servers": address}
    return contexts.load().current_settings()


def _file_settings(path: str) -> dict[str, str]:
    from strandline.config.properties import MalformedProperties, parse_properties

    try:
        with open(path, encoding="utf-8") as file:
            return {each.key: each.value for each in parse_properties(file.read())}
    except (OSError, UnicodeDecodeError, MalformedProperties) as error:
        raise usage(f"--command-config {path} cannot be read: {error}") from error


def admin_client(options: argparse.Namespace, subjects: Sequence[str]) -> Any:
    """Returns an admin client that is not started, with the calls about these subjects."""
    bases = tuple(
        getattr(import_module(f"strandline.client.admin.{subject}"), _SUBJECTS[subject])
        for subject in subjects
    )
    kind = bases[0] if len(bases) == 1 else type("CommandAdmin", bases, {})
    timeout_ms = max(round(options.timeout * 1000), 1)
    settings = settings_of(options)
    settings.setdefault("default.api.timeout.ms", str(timeout_ms))
    settings.setdefault("request.timeout.ms", str(min(timeout_ms, 30_000)))
    return kind(settings)


async def with_admin(options: argparse.Namespace, work: Work, subjects: Sequence[str]) -> int:
    """Calls `work` with a connected admin client."""
    admin = admin_client(options, subjects)
    await admin.start(timeout=min(options.timeout, CONNECT_SECONDS_MAX))
    try:
        return await work(admin, options)
    finally:
        await admin.close()


def run(options: argparse.Namespace, work: Work, *subjects: str) -> int:
    """Runs a command that asks a cluster: `subjects` name the admin calls that it uses ("topics", "groups", …)."""
    return run_async(lambda: with_admin(options, work, subjects), options)


def run_async(main: Callable[[], Awaitable[int]], options: argparse.Namespace | None = None) -> int:
    """Runs a coroutine to its end, and reports an error of the client in a sentence. With the options of the command
    the sentence names the operation that the user lacks."""
    import asyncio
    import logging

    from strandline.client.errors import KafkaError

    # A command reports its own result; the client's warnings about each attempt would only clutter it.
    logging.getLogger("strandline").addHandler(logging.NullHandler())

    async def work() -> int:
        return await main()

    try:
        return asyncio.run(work())
    except KafkaError as error:
        if options is not None:
            from strandline.cli.permissions import name_missing_operation

            name_missing_operation(options, error)
        say_error(error)
        return exit_code_of(error)
