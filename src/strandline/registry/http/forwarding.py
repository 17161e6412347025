"""Forwards a request to the writer, in a thread because the standard library's client blocks."""

from __future__ import annotations

import json
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlsplit

from strandline.ports.workers import Workers
from strandline.registry.errors import LeaderUnknown
from strandline.registry.http.exchange import Exchange, Reply
from strandline.registry.http.writing import FORWARDED

_PASSED_ON: Final = ("content-type", "authorization")


class HttpForwarder:
    def __init__(self, workers: Workers, timeout_seconds: float, tls: Any = None) -> None:
        """`tls` is the context of connections to other instances, if they speak TLS."""
        self._workers = workers
        self._tls = tls
        self._timeout_seconds = timeout_seconds

    async def forward(self, url: str, exchange: Exchange) -> Reply:
        headers = {name: exchange.headers[name] for name in _PASSED_ON if name in exchange.headers}
        headers[FORWARDED] = "true"
        status, body = await self._workers.run(
            send_request,
            url,
            exchange.method,
            exchange.target,
            headers,
            exchange.body,
            self._timeout_seconds,
            self._tls,
        )
        reply = Reply(status=status, text=body.decode())
        if status == 500 and _error_code(body) == LeaderUnknown.CODE:
            raise LeaderUnknown(f"Leader not known. {url} is no longer the leader.")
        return reply


def _error_code(body: bytes) -> object:
    """Returns the code of an error, None if a proxy wrote it and not a registry."""
    try:
        error = json.loads(body)
    except ValueError:
        return None
    return error.get("error_code") if isinstance(error, dict) else None


def send_request(
    url: str,
    method: str,
    target: str,
    headers: dict[str, str],
    body: bytes,
    timeout_seconds: float,
    tls: Any = None,
) -> tuple[int, bytes]:
    """Returns status and body of the response. Raises ConnectionRefusedError, another ConnectionError, or
    TimeoutError."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    connection = (
        HTTPSConnection(host, parts.port, timeout=timeout_seconds, context=tls)
        if parts.scheme == "https"
        else HTTPConnection(host, parts.port, timeout=timeout_seconds)
    )
    try:
        connection.connect()
    except (TimeoutError, OSError) as error:
        raise ConnectionRefusedError(f"nobody responds at {url}: {error}") from error
    try:
        connection.request(method, target, body=body or None, headers=headers)
        response = connection.getresponse()
        return response.status, response.read()
    except TimeoutError:
        raise
    except (HTTPException, OSError) as error:
        raise ConnectionAbortedError(f"the connection to {url} broke: {error}") from error
    finally:
        connection.close()
