"""A response that is completed later. There is no other way to respond later.

It is completed by a plain call, and sent in the same iteration of the loop. With a future it would be sent in the next
one, after the fetches of followers have been handled (ADR 25).
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
    """Returns the encoded response in the version of its request, and counts its errors."""
    count_errors(message, context)
    return encode(message, context.api_version)


class PendingResponse:
    """A response whose bytes come later."""

    __slots__ = ("body", "request")

    def __init__(self) -> None:
        self.body: Body | None = None
        # The request that waits for it, once its connection has noted that.
        self.request: RequestContext | None = None

    def complete(self, body: Body) -> None:
        self.body = body
        # The request refers to this object: the cycle would stay until the garbage collector runs.
        request, self.request = self.request, None
        if request is not None:
            request.connection.completed(request, body)

    def cancel(self) -> None:
        """Ends the wait, because the client is gone."""
        self.request = None


class PendingMessage(PendingResponse):
    """A response that is completed with a message, which is encoded for the version of the request."""

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
            # Other clients get their responses in the same step, so only this client's connection ends.
            self.body = ()
            context.connection.cannot_encode(context, error)
        else:
            self.complete(body)


class AwaitedMessage:
    """A message that a coroutine awaits in order to use it."""

    __slots__ = ("_future",)

    def __init__(self) -> None:
        self._future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def respond(self, message: Any) -> None:
        if not self._future.done():
            self._future.set_result(message)

    def __await__(self) -> Generator[Any, None, Any]:
        return self._future.__await__()


# The result of a handler's coroutine: a response, or a pending one if it only has to wait.
Finished = Body | None | PendingResponse
# The result of a handler. The response is None if the client expects none.
Handled = Finished | Coroutine[Any, Any, Finished]
