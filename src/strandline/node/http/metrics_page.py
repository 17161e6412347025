"""A page of metrics for Prometheus, for programs that are not nodes: a probe, a pipeline."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from strandline.node.http.messages import HttpHandler, HttpRequest, HttpResponse
from strandline.node.http.server import HttpServer
from strandline.telemetry.exposition import OPEN_METRICS, TEXT, Family, render

_SERIES_MAX: Final = 10_000
_START_S: Final = 30.0


def metrics_handler(families: Callable[[], Iterable[Family]]) -> HttpHandler:
    """Serves /metrics in both formats; `families` is called for each page."""

    async def respond(request: HttpRequest) -> HttpResponse:
        if request.segments != ("metrics",):
            return HttpResponse.text("the metrics are at /metrics\n", 404)
        is_open = request.accepts_open_metrics
        text = "".join(render(families(), is_open_metrics=is_open, series_max=_SERIES_MAX))
        return HttpResponse(content_type=OPEN_METRICS if is_open else TEXT, body=text.encode())

    return respond


@contextmanager
def serving_in_a_thread(
    handle: HttpHandler, host: str, port: int, on_failure: Callable[[Exception], None]
) -> Iterator[int]:
    """Serves from a thread of its own, for a program that blocks; yields the port. Raises OSError if it is taken."""
    loop = asyncio.new_event_loop()
    server = HttpServer(handle, on_failure)
    thread = threading.Thread(target=loop.run_forever, name="strandline-metrics", daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.listen(host, port), loop).result(_START_S)
        yield server.port
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(loop.shutdown_asyncgens())  # and what the server has still to close
        loop.close()
