"""`strandline registry`: a schema registry beside any cluster that speaks Kafka's protocol."""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from strandline.cli.arguments import port
from strandline.cli.connection import add_connection, settings_of
from strandline.cli.exit_codes import DONE, FAILED, UNREACHABLE, USAGE

if TYPE_CHECKING:
    from strandline.registry.service.listener_settings import ListenerSettings
    from strandline.registry.service.registry import Registry

DEFAULT_PORT: Final = 8081
HOW_TO_INSTALL: Final = "pip install 'strandline[registry]'"
_NEEDED: Final = ("uvicorn", "httptools", "google.protobuf", "jsonschema_specifications", "fastavro")
_PARENT_CHECK_SECONDS: Final = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Serves the REST interface of Confluent's schema registry from the topic _schemas of a cluster, and runs "
        "until Ctrl-C. Several instances with the same topic and group work together: one of them writes, and all "
        "serve reads."
    )
    parser.add_argument(
        "--port",
        type=port,
        default=DEFAULT_PORT,
        help="the port to listen on; 0 takes a free one (default: 8081)",
    )
    parser.add_argument("--host", default="localhost", help="the address to listen on (default: localhost)")
    parser.add_argument(
        "--url",
        metavar="URL",
        help="the URL by which other instances reach this one (default: from --host and --port)",
    )
    parser.add_argument("--topic", default="_schemas", help="the topic of the schemas (default: _schemas)")
    parser.add_argument(
        "--group",
        default="schema-registry",
        help="the name that all instances of the registry share (default: schema-registry)",
    )
    parser.add_argument(
        "--compatibility",
        default="BACKWARD",
        type=str.upper,
        metavar="LEVEL",
        help="the compatibility level of subjects without a configured one: NONE, BACKWARD, FORWARD, FULL, or one of "
        "the last three with _TRANSITIVE (default: BACKWARD)",
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="a .properties file with settings of the port: ssl.* and authentication.method, with Confluent's names",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="one setting of the port, which overrides --config; repeat it for several",
    )
    parser.add_argument("--quiet", action="store_true", help="print only one line when the registry is ready")
    add_connection(parser)


def url_of(host: str, port: int, scheme: str = "http") -> str:
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def is_installed() -> bool:
    """True if all packages that the registry imports are installed."""
    try:
        return all(find_spec(name) is not None for name in _NEEDED)
    except ModuleNotFoundError:  # a parent package is missing
        return False


def call(options: argparse.Namespace) -> int:
    if not is_installed():
        return _fail(f"the registry needs more packages: {HOW_TO_INSTALL}", USAGE)
    from strandline.client.errors import KafkaError
    from strandline.node import loop
    from strandline.ports.tls import TlsError
    from strandline.registry.formats.levels import LEVELS
    from strandline.registry.server import RegistryStopped
    from strandline.registry.service.listener_settings import listener_settings
    from strandline.registry.storage.topic import UnusableTopic

    if options.compatibility not in LEVELS:
        return _fail(f"--compatibility {options.compatibility}: one of {', '.join(LEVELS)}", USAGE)
    client = settings_of(options)  # the settings that every kind of client has
    client["client.id"] = options.group
    try:
        access = listener_settings(_port_settings(options))
    except ValueError as error:
        return _fail(str(error), USAGE)
    try:
        loop.run(_serve(options, client, access))
    except (TlsError, ValueError) as error:
        return _fail(str(error), USAGE)
    except (UnusableTopic, RegistryStopped) as error:
        return _fail(str(error), FAILED)
    except KafkaError as error:
        return _fail(f"no registry without a cluster: {error}", UNREACHABLE)
    except OSError as error:
        return _fail(f"the registry cannot listen on port {options.port}: {error.strerror or error}", USAGE)
    return DONE


def listening_socket(host: str, port: int) -> socket.socket:
    """Returns a bound socket. It is bound before anything else is done, so that a port in use is reported at once."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener


def _port_settings(options: argparse.Namespace) -> dict[str, str]:
    """Returns the settings of --config and --set. The text of a ValueError says what is wrong with them."""
    from strandline.cli.given_settings import given_settings, read_settings

    return (read_settings(options.config) if options.config else {}) | given_settings(options.set)


async def _serve(options: argparse.Namespace, client: dict[str, str], access: ListenerSettings) -> None:
    from strandline.node.launcher import STOPS_WITH_PARENT
    from strandline.registry.server import serve_registry
    from strandline.registry.service.settings import RegistrySettings

    listener = listening_socket(options.host, options.port)
    scheme = "http" if access.tls is None else "https"
    url = options.url or url_of(options.host, listener.getsockname()[1], scheme)
    settings = RegistrySettings(
        client=client,
        url=url,
        topic=options.topic,
        group=options.group,
        default_level=options.compatibility,
    )
    serving = asyncio.create_task(
        serve_registry(settings, listener, lambda registry: _say_ready(options, registry), access)
    )
    parent = os.environ.get(STOPS_WITH_PARENT)
    while parent is not None and not serving.done() and os.getppid() == int(parent):
        await asyncio.sleep(_PARENT_CHECK_SECONDS)
    if parent is not None and not serving.done():
        serving.cancel()
        return
    await serving


def _say_ready(options: argparse.Namespace, registry: Registry) -> None:
    url = registry.settings.url
    if options.quiet:
        print(f"ready registry={url}", flush=True)
        return
    print(
        f"The schema registry is ready.\n"
        f"  url      {url}\n"
        f"  topic    {registry.settings.topic}, {len(registry.state.places)} schemas\n"
        f"Stop with Ctrl-C.",
        flush=True,
    )
    if registry.skipped_count:
        print(
            f"  note     {registry.skipped_count} records of the topic were skipped: no registry wrote them"
        )


def _fail(message: str, code: int) -> int:
    print(f"strandline: {message}", file=sys.stderr)
    return code
