"""One HTTP request on a connection of its own, over h11 on the running loop: what the port `Web` does."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

import h11

from strandline.node.tls_contexts import TlsContext
from strandline.ports.tls import Tls
from strandline.ports.web import WebError, WebResponse

# A response is a set of keys, a token or a schema: a larger one is not what was requested.
RESPONSE_BYTES_MAX: Final = 16 * 1024 * 1024
_READ_BYTES: Final = 64 * 1024
_PORTS: Final = {"http": 80, "https": 443}


async def request(
    method: str, url: str, headers: Mapping[str, str], body: bytes, timeout_s: float, tls: Tls | None
) -> WebResponse:
    target = urlsplit(url)
    if target.scheme not in _PORTS or not target.hostname:
        raise WebError(f"{target.scheme}://{target.hostname} is no URL of http:// or https://")
    named = f"{target.scheme}://{target.hostname}:{_port(target)}{target.path}"
    try:
        async with asyncio.timeout(timeout_s):
            return await _exchange(method, target, headers, body, _context(target, tls))
    except TimeoutError:
        raise WebError(f"{named} did not respond within {timeout_s:g} s") from None
    except (OSError, h11.ProtocolError) as error:
        raise WebError(f"{named}: {error}") from error


def _port(target: SplitResult) -> int:
    return target.port or _PORTS.get(target.scheme, 0)


def _context(target: SplitResult, tls: Tls | None) -> ssl.SSLContext | None:
    if target.scheme != "https":
        return None
    if tls is None:
        return ssl.create_default_context()
    assert isinstance(tls, TlsContext)
    return tls.context


async def _exchange(
    method: str,
    target: SplitResult,
    headers: Mapping[str, str],
    body: bytes,
    context: ssl.SSLContext | None,
) -> WebResponse:
    assert target.hostname is not None
    reader, writer = await asyncio.open_connection(target.hostname, _port(target), ssl=context)
    try:
        http = h11.Connection(h11.CLIENT)
        path = f"{target.path or '/'}?{target.query}" if target.query else target.path or "/"
        sent = {"host": target.netloc.rpartition("@")[2], "connection": "close", **_login(target)}
        sent |= {name.lower(): value for name, value in headers.items()}
        if body or method in ("POST", "PUT"):
            sent["content-length"] = str(len(body))
        writer.write(http.send(h11.Request(method=method, target=path, headers=list(sent.items()))) or b"")
        if body:
            writer.write(http.send(h11.Data(data=body)) or b"")
        writer.write(http.send(h11.EndOfMessage()) or b"")
        await writer.drain()
        return await _response(http, reader)
    finally:
        writer.close()


def _login(target: SplitResult) -> dict[str, str]:
    """Returns the header for basic authentication, if the URL has user and password."""
    if target.username is None:
        return {}
    login = f"{unquote(target.username)}:{unquote(target.password or '')}"
    return {"authorization": "Basic " + b64encode(login.encode()).decode()}


async def _response(http: h11.Connection, reader: asyncio.StreamReader) -> WebResponse:
    head: h11.Response | None = None
    body = bytearray()
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(await reader.read(_READ_BYTES))
        elif isinstance(event, h11.Response):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > RESPONSE_BYTES_MAX:
                raise OSError(f"the response has more than {RESPONSE_BYTES_MAX} bytes")
        elif isinstance(event, h11.EndOfMessage):
            assert head is not None
            headers = {name.decode(): value.decode("latin-1") for name, value in head.headers}
            return WebResponse(head.status_code, headers, bytes(body))
        elif isinstance(event, h11.ConnectionClosed):
            raise OSError("the connection was closed before the response")
