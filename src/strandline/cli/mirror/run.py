"""`strandline mirror --config FILE`: runs the flows of a file until Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING, Final

from strandline.base.numbers import natural
from strandline.cli.arguments import port
from strandline.cli.exit_codes import DONE, FAILED, USAGE
from strandline.cli.failures import fail, say_error
from strandline.cli.mirror.files import add_config, load

if TYPE_CHECKING:
    from strandline.mirror.config.settings import MirrorSettings
    from strandline.mirror.mirror import Mirror

_PROGRESS_SECONDS: Final = 5.0


def _size(text: str) -> int:
    units = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
    unit = units.get(text[-1:].lower(), 1)
    found = natural(text[:-1] if unit > 1 else text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text} is no size: bytes, or a number with k, m or g")
    return found * unit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser, required=False)
    parser.add_argument(
        "--instance",
        metavar="NAME",
        help="the name of this process among those that share the work; the same after a restart (default: the host's)",
    )
    parser.add_argument(
        "--bytes-per-second",
        type=_size,
        metavar="SIZE",
        help="copy no more than that in a second, such as 20m; 0 for no limit",
    )
    parser.add_argument(
        "--metrics-port",
        type=port,
        metavar="PORT",
        help="serve metrics for Prometheus there; 0 takes a free port",
    )
    parser.add_argument("--quiet", action="store_true", help="tell only what goes wrong")


def call(options: argparse.Namespace) -> int:
    from strandline.node import loop

    if options.config is None:
        return fail(
            "mirror needs --config FILE with MirrorMaker 2's properties (docs/operating/mirroring.md)"
        )
    settings = load(options.config)
    _configure_logging(options.quiet)
    for key in settings.unknown:
        say_error(f"{options.config}: nothing reads the setting {key}")
    try:
        return loop.run(_run(options, settings))
    except OSError as error:
        say_error(
            f"--metrics-port {options.metrics_port}: {error.strerror}; choose another, or 0 for a free one"
        )
        return USAGE


class _Repeated:
    """Drops lines that were told less than half a minute ago: a flow has several clients, and each of them tells that
    a broker cannot be reached."""

    def __init__(self) -> None:
        from strandline.client.log_limits import RareLines

        self._lines = RareLines(time.monotonic)

    def is_due(self, record: logging.LogRecord) -> bool:
        return record.levelno < logging.WARNING or self._lines.is_due(record.getMessage())


def _configure_logging(is_quiet: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    handler.addFilter(_Repeated().is_due)
    logging.getLogger("strandline").addHandler(handler)
    logging.getLogger("strandline").setLevel(logging.WARNING)
    logging.getLogger("strandline.mirror").setLevel(logging.WARNING if is_quiet else logging.INFO)


async def _run(options: argparse.Namespace, settings: MirrorSettings) -> int:
    from strandline.client.world import real_world
    from strandline.mirror.mirror import Mirror
    from strandline.node.http.metrics_page import metrics_handler
    from strandline.node.http.server import HttpServer

    world = real_world()
    mirror = Mirror(
        settings, options.instance or socket.gethostname(), world, bytes_per_second=options.bytes_per_second
    )
    running = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        running.add_signal_handler(number, mirror.stop)
    server = None
    if options.metrics_port is not None:
        server = HttpServer(metrics_handler(mirror.families), lambda error: say_error(repr(error)))
        await server.listen("localhost", options.metrics_port)
        print(f"metrics are at http://localhost:{server.port}/metrics", file=sys.stderr, flush=True)
    names = ", ".join(flow.settings.name for flow in mirror.flows)
    print(f"mirroring {names}; stop with Ctrl-C", flush=True)
    progress = asyncio.create_task(_tell_progress(mirror, options.quiet))
    try:
        await mirror.run()
    finally:
        progress.cancel()
        if server is not None:
            server.close()
        world.close()
    return FAILED if mirror.stopped else DONE


async def _tell_progress(mirror: Mirror, is_quiet: bool) -> None:
    """Tells how far the first copy is, until it is done."""
    waiting = list(mirror.flows)
    while waiting and not is_quiet:
        await asyncio.sleep(_PROGRESS_SECONDS)
        for flow in list(waiting):
            metrics = flow.metrics
            done, left = metrics.record_count, metrics.lag
            if not done:
                continue
            share = done / (done + left)
            bar = "#" * int(20 * share)
            print(
                f"{flow.settings.name} [{bar:<20}] {share:.0%}: {done} records, {metrics.byte_count / 1e6:.1f} MB "
                f"copied, {left} to go",
                file=sys.stderr,
                flush=True,
            )
            if not left:
                waiting.remove(flow)
