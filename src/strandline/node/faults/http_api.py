"""Faults over HTTP, for tests in other languages: small JSON resources, on the loopback interface only.

    POST   /faults                  {"kind": "error", "api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER"}
    GET    /faults, /faults/ID      ?fired=1&timeout_ms=5000 waits until it has fired; ?held=1 at a barrier
    POST   /faults/ID/release
    DELETE /faults/ID, /faults
    PUT    /disk                    {"kind": "full"}
    DELETE /disk

A cluster has the same for each node below /nodes/ID, and more by `cluster_action`. A request whose Host is not this
machine is refused, and so is a body that is not called JSON: a page in a browser cannot set faults.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from strandline.config.addresses import is_loopback
from strandline.node.faults.rule import FaultError
from strandline.node.http.messages import HttpRequest, HttpResponse
from strandline.node.http.server import HttpServer

HOST: Final = "127.0.0.1"
_POLL_S: Final = 0.01
_WAIT_MS_MAX: Final = 60_000
_HELP: Final = (
    "POST /faults, GET /faults/ID, POST /faults/ID/release, DELETE /faults/ID, PUT /disk, DELETE /disk"
)

# Carries a command out on a node; None stands for the only one.
Do = Callable[[int | None, Mapping[str, Any]], Awaitable[dict[str, Any]]]
# An action of a cluster: its name and its body.
ClusterAction = Callable[[tuple[str, ...], Mapping[str, Any]], Awaitable[dict[str, Any]]]


class FaultsApi:
    def __init__(
        self, do: Do, on_failure: Callable[[Exception], None], cluster_action: ClusterAction | None = None
    ) -> None:
        self._do = do
        self._cluster_action = cluster_action
        self._http = HttpServer(self.handle, on_failure)

    async def listen(self, port: int) -> None:
        """Listens on the loopback interface. Raises OSError if the port is taken."""
        await self._http.listen(HOST, port)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._http.port}"

    def close(self) -> None:
        self._http.close()

    async def handle(self, request: HttpRequest) -> HttpResponse:
        if not is_loopback(request.headers.get("host", "").rpartition(":")[0].strip("[]") or "nowhere"):
            return _said("only this machine may set faults", 403)
        try:
            return await self._route(request, _body_of(request))
        except FaultError as error:
            return _said(str(error), 400)
        except LookupError as error:
            return _said(str(error), 404)
        except (TimeoutError, RuntimeError) as error:
            return _said(str(error), 409)

    async def _route(self, request: HttpRequest, body: Mapping[str, Any]) -> HttpResponse:
        match (request.method, *request.segments):
            case (_, "nodes", number, *rest) if number.isdecimal() and rest and rest[0] in ("faults", "disk"):
                return await self._node(request, int(number), tuple(rest), body)
            case ("POST", *action) if self._cluster_action is not None and action[:1] != ["faults"]:
                return HttpResponse.json(await self._cluster_action(tuple(action), body))
            case _:
                return await self._node(request, None, request.segments, body)

    async def _node(
        self, request: HttpRequest, node: int | None, path: tuple[str, ...], body: Mapping[str, Any]
    ) -> HttpResponse:
        match (request.method, *path):
            case ("POST", "faults"):
                return HttpResponse.json(await self._do(node, {"do": "set", "fault": body}), 201)
            case ("GET", "faults") | ("GET",):
                return HttpResponse.json(await self._do(node, {"do": "list"}))
            case ("DELETE", "faults"):
                return HttpResponse.json(await self._do(node, {"do": "clear_all"}))
            case ("GET", "faults", number):
                return await self._status(node, _id(number), request.query)
            case ("DELETE", "faults", number):
                return HttpResponse.json(await self._do(node, {"do": "clear", "id": _id(number)}))
            case ("POST", "faults", number, "release"):
                return HttpResponse.json(await self._do(node, {"do": "release", "id": _id(number)}))
            case ("PUT", "disk"):
                return HttpResponse.json(await self._do(node, {"do": "disk", "fault": body}))
            case ("DELETE", "disk"):
                return HttpResponse.json(await self._do(node, {"do": "disk", "fault": None}))
            case _:
                return _said(f"there is nothing at {request.method} {request.target}; there is {_HELP}", 404)

    async def _status(self, node: int | None, fault_id: int, query: Mapping[str, str]) -> HttpResponse:
        """Returns the state of a fault, once it has fired as often, and holds as many requests, as the query asks
        for."""
        wanted = {name: _number(name, query[name]) for name in ("fired", "held") if name in query}
        limit_ms = min(_number("timeout_ms", query.get("timeout_ms", "5000")), _WAIT_MS_MAX)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + limit_ms / 1000
        while True:
            status = await self._do(node, {"do": "status", "id": fault_id})
            if all(status[name] >= count for name, count in wanted.items()):
                return HttpResponse.json(status)
            if loop.time() > deadline:
                return HttpResponse.json({**status, "error": f"not within {limit_ms} ms"}, 408)
            await asyncio.sleep(_POLL_S)


def _said(error: str, status: int) -> HttpResponse:
    return HttpResponse.json({"error": error}, status)


def _body_of(request: HttpRequest) -> Mapping[str, Any]:
    if request.method in ("GET", "HEAD", "DELETE") or not request.body:
        return {}
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise FaultError("send JSON, with the header content-type: application/json")
    try:
        body = json.loads(request.body)
    except ValueError as error:
        raise FaultError(f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise FaultError("the body is not a JSON object")
    return body


def _id(text: str) -> int:
    return _number("the id of a fault", text)


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise FaultError(f"{name}: {text!r} is not a number")
    return int(text)
