"""An answer that comes by a plain call: to the connection, in the turn of the loop in which it is known.

A future tells of it only in the next turn. What a client waits for while followers are told what it waited for, or what
is written at the end of its own turn, should not leave behind them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from strandline.base.buffers import Buffer
from strandline.storage.segment import Slice
from strandline.wire.codec import EncodeError, encode

if TYPE_CHECKING:
    from strandline.broker.server.connection import RequestContext

# An answer's body: bytes and regions of files, one behind the other.
Body = Sequence[Buffer | Slice]


class Later:
    __slots__ = ("given", "request")

    def __init__(self) -> None:
        self.given: Body | None = None
        # Which request waits for it, once its connection knows that it has to wait.
        self.request: RequestContext | None = None

    def give(self, body: Body) -> None:
        self.given = body
        # The request knows this one: the cycle would be garbage that stays until the collector comes.
        request, self.request = self.request, None
        if request is not None:
            request.connection.given(request, body)

    def abandon(self) -> None:
        """The client has gone."""
        self.request = None


class MessageLater(Later):
    """The token of a request to a coordinator: takes the message, and has its bytes for the connection."""

    __slots__ = ("_context",)

    def __init__(self, context: RequestContext) -> None:
        super().__init__()
        self._context = context

    def done(self) -> bool:
        return self.given is not None

    def set_result(self, message: Any) -> None:
        context = self._context
        try:
            body = (encode(message, context.api_version),)
        except EncodeError as error:
            # Whoever gives it gives others theirs too: only this client's connection ends.
            self.given = ()
            context.connection.cannot_answer(context, error)
        else:
            self.give(body)
