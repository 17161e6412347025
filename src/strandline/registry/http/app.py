"""The ASGI application: reads a request, finds its operation, writes the response.

Responses about ids are kept as bytes: a schema that was once found under its id never changes. They are forgotten
when a schema is deleted for good.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from strandline.ports.workers import Workers
from strandline.registry import errors
from strandline.registry.errors import RegistryError
from strandline.registry.formats.large import BODY_LARGE_MIN, Call, read_body
from strandline.registry.http.exchange import V1_JSON, Exchange, Reply, error_reply, negotiated_type
from strandline.registry.http.paths import cut_path, enter_context, find_operation, read_query
from strandline.registry.http.reading import ReadOperations
from strandline.registry.http.writing import Forwarder, WriteOperations
from strandline.registry.model.queries import resolve_alias
from strandline.registry.service.logins import ClusterLogins
from strandline.registry.service.registry import Registry

BODY_BYTES_MAX: Final = 4 * 1024 * 1024  # enough for a schema of a megabyte, escaped as JSON in JSON
_TARGET_BYTES_MAX: Final = 16 * 1024
_KEPT_MAX: Final = 10_000  # responses about ids
_KEPT_PATH: Final = b"/schemas/ids/"
# Errors of things that another instance may already know: the topic is read to its end before one of them is returned.
_UNKNOWN: Final = (40401, 40402, 40403, 40404, 40408, 40409)

_log = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class RegistryApp:
    def __init__(
        self,
        registry: Registry,
        workers: Workers,
        forwarder: Forwarder,
        logins: ClusterLogins | None = None,
    ) -> None:
        """With `logins` every request needs a name and a password."""
        self._registry = registry
        self._workers = workers
        self._logins = logins
        self._reads = ReadOperations(registry, workers).handlers
        self._writes = WriteOperations(registry, workers, forwarder).handlers
        self._methods: dict[str, list[str]] = {}
        for method, name in (*self._reads, *self._writes):
            self._methods.setdefault(name, []).append(method)
        self._kept: dict[bytes, tuple[object, bytes]] = {}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await _live(receive, send)
            return
        if self._logins is not None and not await self._may_enter(self._logins, scope, send):
            return
        kept = self._kept_response(scope)
        if kept is not None:
            await _respond(send, 200, V1_JSON, kept)
            return
        content_type = V1_JSON
        try:
            content_type = negotiated_type(_header(scope, b"accept"))
            reply = await self._reply(scope, receive)
        except RegistryError as error:
            reply = error_reply(error)
        except (
            Exception
        ):  # a defect of this program: it is logged with its traceback, and only this request fails
            _log.exception("%s %s failed", scope["method"], scope["path"])
            reply = error_reply(RegistryError(500, 500, "Internal Server Error"))
        body = reply.encoded()
        if reply.status == 200 and content_type == V1_JSON and scope["method"] == "GET":
            self._keep(scope, body)
        await _respond(send, reply.status, content_type, b"" if scope["method"] == "HEAD" else body)

    async def _may_enter(self, logins: ClusterLogins, scope: Message, send: Send) -> bool:
        """True if the request has a login of the cluster; otherwise the response is sent."""
        try:
            if await logins.is_accepted(_header(scope, b"authorization")):
                return True
            refusal = RegistryError(401, 401, "Unauthorized")
        except RegistryError as error:
            refusal = error
        asks = (
            ((b"www-authenticate", f'Basic realm="{logins.realm}"'.encode()),)
            if refusal.status == 401
            else ()
        )
        await _respond(send, refusal.status, V1_JSON, error_reply(refusal).encoded(), asks)
        return False

    async def _reply(self, scope: Message, receive: Receive) -> Reply:
        exchange, name = await self._read(scope, receive)
        read = self._reads.get((exchange.method, name))
        if read is not None:
            try:
                return await read(exchange)
            except RegistryError as error:
                if error.code not in _UNKNOWN:
                    raise
            await self._registry.refresh()
            return await read(exchange)
        write = self._writes.get((exchange.method, name))
        if write is not None:
            return await write(exchange)
        raise RegistryError(405, 405, "HTTP 405 Method Not Allowed")

    async def _read(self, scope: Message, receive: Receive) -> tuple[Exchange, str]:
        raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
        query_string: bytes = scope["query_string"]
        if len(raw_path) + len(query_string) > _TARGET_BYTES_MAX:
            raise RegistryError(414, 414, "HTTP 414 URI Too Long")
        query = read_query(query_string)
        segments = enter_context(cut_path(raw_path.decode("latin-1")), query)
        name, path = find_operation(segments)
        if "subject" in path and segments[0] in ("subjects", "compatibility"):
            path["subject"] = resolve_alias(self._registry.state, path["subject"])
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        exchange = Exchange(
            method=method,
            target=raw_path.decode("latin-1")
            + (f"?{query_string.decode('latin-1')}" if query_string else ""),
            path=path,
            query=query,
            headers={key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]},
        )
        if method in ("POST", "PUT"):
            exchange.body = await _read_body(receive)
            if self._registry.call is not None and len(exchange.body) >= BODY_LARGE_MIN:
                exchange.read = await self._read_elsewhere(self._registry.call, exchange.body)
        return exchange, name

    async def _read_elsewhere(self, call: Call, body: bytes) -> Callable[[bytes], Any]:
        """Reads a large body in another process. The handler gets the result, or the error of a body that is not
        valid."""
        try:
            value = await self._workers.run(call, read_body, body)
        except (ValueError, RecursionError) as error:
            raise errors.bad_request(f"The request body is not JSON: {error}") from None
        return lambda _: value

    # Responses about ids

    def _kept_response(self, scope: Message) -> bytes | None:
        if scope["method"] != "GET" or scope["query_string"]:
            return None
        kept = self._kept.get(scope.get("raw_path") or b"")
        if kept is None or kept[0] is not self._registry.state.removals:
            return None
        accept = _header(scope, b"accept")
        if accept in ("", "*/*", V1_JSON) or V1_JSON in accept:
            return kept[1]
        return None

    def _keep(self, scope: Message, body: bytes) -> None:
        raw_path: bytes = scope.get("raw_path") or b""
        id = raw_path.removeprefix(_KEPT_PATH)
        if id == raw_path or not id.isdigit() or scope["query_string"]:
            return
        if len(self._kept) >= _KEPT_MAX:
            self._kept.clear()
        self._kept[raw_path] = (self._registry.state.removals, body)


async def _read_body(receive: Receive) -> bytes:
    parts = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise errors.bad_request("the client went away")
        part = message.get("body", b"")
        size += len(part)
        if size > BODY_BYTES_MAX:
            raise RegistryError(
                413, 413, f"HTTP 413 Request Entity Too Large: more than {BODY_BYTES_MAX} bytes"
            )
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


async def _respond(
    send: Send, status: int, content_type: str, body: bytes, more: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    headers = [(b"content-length", str(len(body)).encode()), *more]
    if status != 204:
        headers.append((b"content-type", content_type.encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
        await asyncio.sleep(0)


def _header(scope: Message, name: bytes) -> str:
    for key, value in scope["headers"]:
        if key == name:
            return str(value.decode("latin-1"))
    return ""
