"""Requests and responses of HTTP, as handlers see them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    method: str
    target: str  # path and query, as they came
    headers: Mapping[str, str] = field(default_factory=dict)  # names in lower case
    body: bytes = b""

    @property
    def segments(self) -> tuple[str, ...]:
        """The parts of the path between its slashes, decoded."""
        path = urlsplit(self.target).path
        return tuple(unquote(part) for part in path.strip("/").split("/")) if path.strip("/") else ()

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters after the question mark; of one that is repeated, the last."""
        return {name: values[-1] for name, values in parse_qs(urlsplit(self.target).query).items()}

    @property
    def accepts_open_metrics(self) -> bool:
        """True if a scraper asks for OpenMetrics rather than for Prometheus' older format."""
        return "application/openmetrics-text" in self.headers.get("accept", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"
    body: bytes = b""

    @staticmethod
    def text(text: str, status: int = 200) -> HttpResponse:
        return HttpResponse(status=status, body=text.encode())

    @staticmethod
    def json(value: object, status: int = 200) -> HttpResponse:
        body = json.dumps(value).encode()
        return HttpResponse(status=status, content_type="application/json", body=body)


HttpHandler = Callable[[HttpRequest], Awaitable[HttpResponse]]
