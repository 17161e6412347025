"""The dispatch of a request to its handler, by API key, version and listener.

A handler's module is imported on its first request, so that a start does not import unused ones. A module has either
`handle(services, context, request) -> response`, which takes and returns version-free messages, or
`handle_raw(services, context)`, which handles the bytes itself: it decodes them by hand on the hot path, or encodes a
large response in a worker.

A handler returns its response; or a coroutine, which holds up the connection's next request until it is done; or a
`PendingResponse`, which does not. If a whole request can fail while it waits, `refuse(request, error) -> response`
makes its response. If `first_load(services, request)` returns a load, it is awaited before the request is handled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from importlib import import_module
from types import CoroutineType
from typing import Any

from strandline.base.errors import KafkaError
from strandline.broker.authorization.node_authorizer import NodeAuthorizer
from strandline.broker.authorization.reduction import Reduction
from strandline.broker.server.api_row import ApiRow
from strandline.broker.server.pending_response import Finished, Handled, PendingResponse, encode_counted
from strandline.broker.server.request_context import Body, RequestContext
from strandline.wire.codec import DecodeError, decode
from strandline.wire.schema import Message, Request

Handler = Callable[[Any, RequestContext], Handled]
Refuse = Callable[[Any, KafkaError], Message]
FirstLoad = Callable[[Any, Any], asyncio.Task[None] | None]


class Dispatch:
    """Finds handlers in `package` by the rows of `table`, and calls them with `services`."""

    def __init__(
        self,
        table: Mapping[int, ApiRow],
        package: str,
        services: object,
        unknown_version: Mapping[int, Handler],
        authorizer: NodeAuthorizer | None,
    ) -> None:
        """`unknown_version` has handlers for APIs that respond to unknown versions. The controller authorizes its own
        requests; handlers of bytes call the authorizer themselves."""
        self._table = table
        self._package = package
        self._services = services
        self._unknown_version = unknown_version
        self._authorizer = authorizer
        self.flexible = frozenset(
            (row.key, version)
            for row in table.values()
            for version in range(row.flexible_from, row.version_max + 1)
        )
        self._loaded: dict[int, Handler] = {}
        # The handlers that were found, by key, version and whether the request came to a controller's listener.
        self._served: dict[tuple[int, int, bool], Handler] = {}

    def handle(self, context: RequestContext) -> Handled:
        place = (context.api_key, context.api_version, context.connection.is_controller_listener)
        handler = self._served.get(place)
        if handler is None:
            handler = self._find(*place)
        return handler(self._services, context)

    def intercept(self, handle: Callable[[RequestContext], Handled] | None) -> None:
        """Sends every request to `handle` instead, for tests that set faults; None ends that."""
        vars(self).pop("handle", None)
        if handle is not None:
            vars(self)["handle"] = handle

    def _find(self, api_key: int, api_version: int, is_controller_listener: bool) -> Handler:
        row = self._table.get(api_key)
        if row is None:
            raise DecodeError(f"the request has the unknown API key {api_key}")
        if not row.is_served_on(controller_listener=is_controller_listener):
            raise DecodeError(f"{row.name} is not served on this listener")
        if not row.version_min <= api_version <= row.version_max:
            if api_key in self._unknown_version:
                return self._unknown_version[api_key]
            raise DecodeError(
                f"{row.name} in version {api_version}; {row.version_min} to {row.version_max} are known"
            )
        if api_key not in self._loaded:
            module = import_module(f"{self._package}.{row.module}")
            authorizer = None if row.is_decided_by_controller else self._authorizer
            self._loaded[api_key] = (
                module.handle_raw if hasattr(module, "handle_raw") else _by_message(module, authorizer)
            )
        handler = self._served[api_key, api_version, is_controller_listener] = self._loaded[api_key]
        return handler


def _by_message(module: Any, authorizer: NodeAuthorizer | None) -> Handler:
    """Wraps a handler of messages: decodes the request, has it authorized, encodes the response."""
    request_class: type[Request] = module.REQUEST
    handle: Callable[[Any, RequestContext, Any], Any] = module.handle
    refuse: Refuse | None = getattr(module, "refuse", None)
    first_load: FirstLoad | None = getattr(module, "first_load", None)

    def handle_bytes(services: Any, context: RequestContext) -> Handled:
        request = decode(request_class, context.api_version, context.body, context.position)
        return handle_message(services, context, request)

    def handle_authorized(services: Any, context: RequestContext) -> Handled:
        request = decode(request_class, context.api_version, context.body, context.position)
        reduction = authorizer.reduce(context, request)  # type: ignore[union-attr]
        if reduction is None:
            return handle_message(services, context, request)
        if reduction.request is None:
            return (encode_counted(reduction.merge(None), context),)
        return handle_reduced(services, context, reduction)

    def handle_reduced(services: Any, context: RequestContext, reduction: Reduction) -> Handled:
        load = None if first_load is None else first_load(services, reduction.request)
        if load is not None:
            return after(load, lambda: handle_reduced(services, context, reduction))
        response = handle(services, context, reduction.request)
        if isinstance(response, Message):
            return (encode_counted(reduction.merge(response), context),)
        assert isinstance(response, CoroutineType), "a response that is merged is a message, or awaited"
        assert reduction.request is not None
        return _encoded(_merged(response, reduction), reduction.request, context, refuse)

    def handle_message(services: Any, context: RequestContext, request: Request) -> Handled:
        load = None if first_load is None else first_load(services, request)
        if load is not None:
            return after(load, lambda: handle_message(services, context, request))
        response = handle(services, context, request)
        if isinstance(response, Message):
            return (encode_counted(response, context),)
        if isinstance(response, PendingResponse):
            return response if response.body is None else response.body
        assert isinstance(response, CoroutineType)
        return _encoded(response, request, context, refuse)

    return handle_bytes if authorizer is None else handle_authorized


async def _merged(response: Coroutine[Any, Any, Message], reduction: Reduction) -> Message:
    return reduction.merge(await response)


async def after(load: asyncio.Task[None], handle: Callable[[], Handled]) -> Finished:
    """Returns the result of a handler that is called once a load has ended; its failure shows in the response."""
    await asyncio.shield(load)
    handled = handle()
    return await handled if isinstance(handled, CoroutineType) else handled  # type: ignore[return-value]


async def _encoded(
    response: Coroutine[Any, Any, Message], request: Request, context: RequestContext, refuse: Refuse | None
) -> Body:
    try:
        message = await response
    except KafkaError as error:
        if refuse is None:
            raise
        message = refuse(request, error)
    return (encode_counted(message, context),)
