"""A response that is not known yet: the one way to respond later.

It is completed by a plain call, and leaves in the same iteration of the loop. A future would tell of it only in the
next one, after the followers have been told what the client waited for (ADR 25).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any

from strandline.broker.server.request_context import Body, RequestContext
from strandline.wire.codec import EncodeError, encode
from strandline.wire.error_codes import error_codes
from strandline.wire.schema import Message


def count_errors(message: Message, context: RequestContext) -> None:
    for code in error_codes(message):
        context.times.add_error(code)


def encode_counted(message: Message, context: RequestContext) -> bytearray:
    """A response in the version of its request; its errors are counted."""
    count_errors(message, context)
    return encode(message, context.api_version)


class PendingResponse:
    """The bytes of a response that come later."""

    __slots__ = ("body", "request")

    def __init__(self) -> None:
        self.body: Body | None = None
        # The request that waits for it, once its connection knows that it has to wait.
        self.request: RequestContext | None = None

    def complete(self, body: Body) -> None:
        self.body = body
        # The request refers to this object: the cycle would be garbage that stays until the collector comes.
        request, self.request = self.request, None
        if request is not None:
            request.connection.completed(request, body)

    def cancel(self) -> None:
        """The client is gone."""
        self.request = None


class PendingMessage(PendingResponse):
    """A response that is completed by its message, which is encoded for the version of the request."""

    __slots__ = ("_context",)

    def __init__(self, context: RequestContext) -> None:
        super().__init__()
        self._context = context

    def respond(self, message: Any) -> None:
        """Completes the response; a second message is ignored."""
        if self.body is not None:
            return
        context = self._context
        try:
            body = (encode_counted(message, context),)
        except EncodeError as error:
            # Others get their responses in the same step: only this client's connection ends.
            self.body = ()
            context.connection.cannot_encode(context, error)
        else:
            self.complete(body)


class AwaitedMessage:
    """A message that a coroutine awaits, where the coroutine goes on to use it."""

    __slots__ = ("_future",)

    def __init__(self) -> None:
        self._future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def respond(self, message: Any) -> None:
        if not self._future.done():
            self._future.set_result(message)

    def __await__(self) -> Generator[Any, None, Any]:
        return self._future.__await__()


# The result of a handler's coroutine: a response, or a pending one where all that is left to do is to wait.
Finished = Body | None | PendingResponse
# The result of a handler. The response is None where the client wants none.
Handled = Finished | Coroutine[Any, Any, Finished]
