"""The HTTP resources of a node: its metrics, and whether it lives and is ready."""

from __future__ import annotations

import errno
import gc
from collections.abc import Iterator
from contextlib import contextmanager

from strandline.broker.broker import Broker
from strandline.broker.telemetry.burrow import BurrowApi
from strandline.broker.telemetry.page import MetricsPage
from strandline.node.http.messages import HttpRequest, HttpResponse
from strandline.node.http.server import HttpServer
from strandline.node.process_metrics import ProcessMetrics
from strandline.telemetry.events import Events
from strandline.telemetry.exposition import OPEN_METRICS, TEXT

_PATHS = "/metrics, /healthz, /readyz and /v3/kafka"
_STARTING = "the node is starting"


class MetricsPortInUse(OSError):
    """The port for /metrics is taken; the text has its address."""


class MetricsServer:
    """Serves a node's metrics. It listens before the node is ready, so that everybody can see why it is not."""

    def __init__(self, broker: Broker, events: Events) -> None:
        self._broker = broker
        self._process = ProcessMetrics()
        self._page: MetricsPage | None = None
        self._burrow: BurrowApi | None = None
        self._pages_under_way = 0
        self._collects = True
        self._http = HttpServer(
            self.handle, lambda error: events.error("a request over HTTP failed", error=repr(error))
        )

    async def listen(self, host: str, port: int) -> None:
        try:
            await self._http.listen(host, port)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise MetricsPortInUse(error.errno, error.strerror) from error
            raise
        self._process.start()

    @property
    def port(self) -> int:
        """The port that it listens on, also where 0 was asked for."""
        return self._http.port

    def close(self) -> None:
        self._http.close()
        self._process.close()

    async def handle(self, request: HttpRequest) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            return HttpResponse.text("only GET and HEAD are served here\n", 405)
        match request.segments:
            case ("metrics",):
                return await self._metrics(request)
            case ("healthz",):
                return HttpResponse.text("ok\n")
            case ("readyz",):
                why = self._broker.health.why_not_ready() if self._broker.is_built else _STARTING
                if why is not None:
                    return HttpResponse.text(f"not ready: {why}\n", 503)
                return HttpResponse.text("ready\n")
            case ("v3", "kafka", *path):
                return self._lag(request, tuple(path))
            case ("burrow", "admin"):
                return HttpResponse.text("GOOD")
            case ():
                return HttpResponse.text(f"node {self._broker.node_id} serves {_PATHS}\n")
            case _:
                return HttpResponse.text(f"there is nothing at {request.target}; there is {_PATHS}\n", 404)

    @contextmanager
    def _collector_paused(self) -> Iterator[None]:
        """Pauses Python's garbage collector, which would go through the samples of a large page again and again."""
        if not self._pages_under_way:
            self._collects = gc.isenabled()
            gc.disable()
        self._pages_under_way += 1
        try:
            yield
        finally:
            self._pages_under_way -= 1
            if not self._pages_under_way and self._collects:
                gc.enable()

    def _lag(self, request: HttpRequest, path: tuple[str, ...]) -> HttpResponse:
        if not self._broker.is_built or not self._broker.config.is_broker:
            return HttpResponse.text("this node coordinates no groups\n", 503)
        if self._burrow is None:
            self._burrow = self._broker.burrow_api()
        status, body = self._burrow.respond(path)
        body["request"] = {"url": request.target, "host": request.headers.get("host", "")}
        return HttpResponse.json(body, status)

    async def _metrics(self, request: HttpRequest) -> HttpResponse:
        if not self._broker.is_built:
            return HttpResponse.text(f"{_STARTING}\n", 503)
        if self._page is None:
            self._page = self._broker.metrics_page()
            self._page.add(self._process.families)
        is_open = request.accepts_open_metrics
        with self._collector_paused():
            body = await self._page.text(is_open_metrics=is_open)
        return HttpResponse(content_type=OPEN_METRICS if is_open else TEXT, body=body)
