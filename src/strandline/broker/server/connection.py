"""A client's connection: it receives frames, and sends responses in the order of the requests.

1. Requests are handled in the order in which they arrive. A request whose handler returned a coroutine holds up the
   next until it is done, so that two writes of one connection never overtake each other; a request that merely waits (a
   long poll, acknowledgements) does not.
2. Responses are sent in the order of their requests. When an ApiVersions request follows a long poll, the poll is
   completed with the records that there are. Only Strandline's nodes use this: a follower ends a poll in which a
   partition is missing by now (`NodeClient.nudge`, `interrupt_long_poll`).
3. Nothing is read that could not be handled: while such a coroutine runs, and above SEND_BYTES_HIGH unsent bytes or
   WAITING_MAX waiting requests, the socket is paused. So a peer that does not read its responses stops only itself.
4. The memory of a large request grows with the bytes that arrive, and is charged to the node first; if there is no
   room, the socket waits. A request that is not complete in time closes its connection.
5. Invalid bytes close this connection, with one line in the log, and affect nothing else.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from struct import Struct
from types import CoroutineType
from typing import Any, Final

from strandline.broker.security.authentication import Authentication
from strandline.broker.server.pending_response import Finished, PendingResponse
from strandline.broker.server.request_context import (
    API_VERSIONS,
    Body,
    RequestContext,
    read_header,
    read_whole,
)
from strandline.broker.server.server_context import ServerContext
from strandline.ports.network import Connection
from strandline.rpc.frames import BadFrame, FrameReader
from strandline.security.principal import ANONYMOUS
from strandline.storage.segment import Slice
from strandline.telemetry.request_metrics import RequestTimes
from strandline.wire.api_index import API_INDEX
from strandline.wire.codec import DecodeError, EncodeError

SEND_BYTES_HIGH: Final = 1024 * 1024
WAITING_MAX: Final = 100
GATHERED_BYTES_MAX: Final = 64 * 1024
# A smaller region of a file is read and sent with the bytes around it: system calls take longer than the copy.
SENT_FROM_FILE_MIN: Final = 16 * 1024

# Advice for a peer that speaks another protocol.
_ADVICE: Final = {
    "TLS": "the client has security.protocol=SSL or SASL_SSL, and this listener does not",
    "HTTP": "this is a port of Kafka's protocol",
}
_RESPONSE_HEAD: Final = Struct(">ii")
_TAGGED_RESPONSE_HEAD: Final = Struct(">iix")


class ClientConnection:
    def __init__(self, server: ServerContext, listener: str, *, is_controller_listener: bool = False) -> None:
        self._server = server
        self._clock = server.clock
        self.listener = listener
        self.is_controller_listener = is_controller_listener
        self.interrupt_long_poll: Callable[[], None] | None = None
        self.on_lost: Callable[[], None] | None = None
        self.handler_state: dict[int, Any] = {}
        self.principal = ANONYMOUS
        self.authentication: Authentication | None = None  # only on listeners with SASL
        self._frames = FrameReader(server.request_bytes_max)
        self._connection: Connection | None = None
        self._waiting: deque[RequestContext] = deque()
        self._is_exclusive = False  # a coroutine of this connection is running
        self._is_paused = False
        self._gathered: bytearray | None = None  # responses to requests that came together
        self._is_deferred = False  # received bytes are handled at the end of this iteration of the loop
        self._muted: asyncio.TimerHandle | None = None  # over a quota: nothing is read until then
        self._is_held = False  # over a limit of connections: not served yet
        self._charged = 0
        self._is_incomplete = False  # a part of a request has been received
        self.last_active = 0.0
        self._arrived_at: float | None = None  # the arrival of deferred requests
        self._measured_to = 0.0  # the time of earlier requests is accounted for
        self._sending: RequestTimes | None = None  # the times of the latest response
        self._unsent: tuple[RequestTimes, float] | None = (
            None  # the API whose response waits for the peer, and its time
        )
        self.software = ("unknown", "unknown")  # name and version, from ApiVersions 3 and later
        self.buffer = self._frames.buffer

    @property
    def peer_address(self) -> str:
        return self._connection.peer_address if self._connection is not None else "gone"

    # Called by the network

    def connected(self, connection: Connection) -> None:
        self._connection = connection
        self.last_active = self._clock.monotonic()
        verdict = self._server.limits.admit(self)
        if verdict == "hold":
            self._is_held = True
            self._pause()
        elif verdict == "refuse":
            connection.abort()
        events = self._server.connection_events
        if events.is_debug:
            events.debug("connected", peer=self.peer_address, listener=self.listener, verdict=verdict)

    def received(self, size: int) -> None:
        if self._frames.received(size):
            if not self._is_deferred:
                self._is_deferred = self._server.batcher.should_defer(self)
                if self._is_deferred:
                    self._arrived_at = self._server.batcher.deferred_at
                else:
                    self._pump()
        elif self._frames.is_full:
            self._pump()  # a large request, or one for a buffer of its own
        else:
            self.last_active = self._clock.monotonic()

    def handle_received(self) -> None:
        """Handles the requests of this iteration of the loop; the responses wait for `send_responses`."""
        self._is_deferred = False
        if self._gathered is None:
            self._gathered = bytearray()
        try:
            self._pump()
        except Exception as error:
            # This is a defect of Strandline; the other connections of this iteration must not suffer from it.
            self._server.events.error("a request failed", peer=self.peer_address, error=repr(error))
            self._fail(repr(error))

    def send_responses(self) -> None:
        gathered, self._gathered = self._gathered, None
        if gathered and self._connection is not None:
            self._connection.send(gathered)
            if self._connection.unsent_bytes:
                self._note_unsent()

    def drained(self) -> None:
        self.last_active = self._clock.monotonic()
        if self._unsent is not None:
            times, since = self._unsent
            self._unsent = None
            times.sent(self.last_active - since)
        self._resume()

    def lost(self, error: Exception | None) -> None:
        events = self._server.connection_events
        if events.is_debug:
            events.debug("disconnected", peer=self.peer_address, error=error or "none")
        self._connection = None
        self._server.memory.complete(self)
        self._release_charge()
        self._server.limits.ended(self)
        if self.on_lost is not None:
            self.on_lost()
        for waiting in self._waiting:
            waiting.is_complete = True
            waiting.times.waiting -= 1
            if waiting.pending is not None:
                waiting.pending.cancel()
        self._waiting.clear()

    # Called by the broker

    def serve(self) -> None:
        """Serves a connection that was held back, because there is room now."""
        self._is_held = False
        self._resume()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def abort(self) -> None:
        """Ends the connection at once."""
        if self._connection is not None:
            self._connection.abort()

    def end_with(self, data: bytes) -> None:
        """Sends these bytes after the complete responses, and closes the connection."""
        self._send_gathered()
        if self._connection is not None:
            self._connection.send(data)
            self._connection.close()

    def end_idle(self) -> None:
        """Closes an idle connection, without waiting for a peer that does not take its responses."""
        if self._connection is not None:
            if self._connection.unsent_bytes:
                self._connection.abort()
            else:
                self._connection.close()

    @property
    def is_idle(self) -> bool:
        return not self._waiting and not self._is_exclusive

    def memory_granted(self) -> None:
        """Receives more of a large request, because there is memory now."""
        self._charged += self._frames.growth_bytes
        self._frames.grow()
        self._resume()

    def end_overdue(self) -> None:
        """Closes the connection, because the rest of a request has not come in time."""
        self._fail("the rest of a request did not come in time")

    # Requests

    def _pump(self) -> None:
        """Handles complete requests, as long as the connection may go on."""
        self.last_active = self._measured_to = self._clock.monotonic()
        is_outermost = self._gathered is None
        if is_outermost:
            self._gathered = bytearray()
        frames = self._frames
        try:
            while not self._is_paused and self._connection is not None:
                frame = frames.next_frame()
                if frame is None:
                    if frames.has_begun:
                        self._receive_more()
                    return
                if self._is_incomplete:
                    self._is_incomplete = False
                    self._server.memory.complete(self)
                self._handle(frame)
                if self._charged and not self._is_exclusive:
                    self._release_charge()
                if self._must_pause():
                    self._pause()
                if not frames.small_end:
                    return  # the usual case
        except BadFrame as error:
            self._send_gathered()
            self._fail(str(error), error.protocol)
        except DecodeError as error:
            self._send_gathered()
            self._fail(str(error))
        finally:
            self._arrived_at = None
            if is_outermost:
                self._send_gathered()
                self._gathered = None

    def _send_gathered(self) -> None:
        """Sends the responses to requests that came together, because a system call takes longer than a response."""
        gathered = self._gathered
        if gathered and self._connection is not None:
            self._gathered = bytearray()
            self._connection.send(gathered)
            if self._connection.unsent_bytes:
                self._note_unsent()

    def _note_unsent(self) -> None:
        """Notes that the peer takes its responses more slowly than they are made."""
        if self._unsent is None and self._sending is not None:
            self._unsent = (self._sending, self._clock.monotonic())

    def _receive_more(self) -> None:
        """Requests memory for the rest of a request of which a part has been received."""
        memory, frames = self._server.memory, self._frames
        if not self._is_incomplete or frames.growth_bytes:
            self._is_incomplete = True
            memory.begin(self, frames.announced, self.last_active)
        if frames.growth_bytes:
            if memory.charge(frames.growth_bytes, self):
                self._charged += frames.growth_bytes
                frames.grow()
            else:
                self._pause()

    def _release_charge(self) -> None:
        if self._charged:
            charged, self._charged = self._charged, 0
            self._server.memory.release(charged)

    def _handle(self, frame: memoryview) -> None:
        context = read_header(self, frame, self._server.dispatch.flexible, self._server.requests)
        started_at = self._measured_to
        if self.interrupt_long_poll is not None and context.api_key == API_VERSIONS:
            self.interrupt_long_poll()
        if self._server.request_events.is_debug:
            self._tell_request(context)
        quotas = self._server.quotas
        if quotas.is_active:
            context.quota_client_id = context.client_id or ""
        try:
            handled = self._server.dispatch.handle(context)
        except EncodeError as error:
            self.cannot_encode(context, error)
            return
        now = self._measured_to = self._clock.monotonic()
        arrived_at = self._arrived_at or self.last_active
        if not self._waiting and (handled is None or type(handled) is tuple or type(handled) is list):
            # Most requests do not wait.
            if started_at == arrived_at:
                context.times.at_once(now - started_at)
            else:
                context.times.waited(started_at - arrived_at, now - started_at, 0.0)
            if quotas.is_active:
                context.started_at, context.handled_at = started_at, now
                handled = quotas.throttled(context, handled)
            if handled is not None:
                self._send(context, handled)
            return
        context.arrived_at, context.started_at, context.handled_at = arrived_at, started_at, now
        self._waiting.append(context)
        context.times.waiting += 1
        if isinstance(handled, CoroutineType):
            self._is_exclusive = True
            self._server.tasks.start(self._finish(context, handled), handled)
        else:
            self._take(context, handled)  # type: ignore[arg-type]

    async def _finish(self, context: RequestContext, work: Coroutine[Any, Any, Finished]) -> None:
        try:
            finished = await work
            context.handled_at = self._clock.monotonic()
            self._take(context, finished)
        except DecodeError as error:
            self._fail(str(error))
        except EncodeError as error:
            self.cannot_encode(context, error)
        finally:
            self._is_exclusive = False
            self._release_charge()
        self._resume()

    def _take(self, context: RequestContext, finished: Finished) -> None:
        if not isinstance(finished, PendingResponse):
            self._complete(context, finished)
        elif context.is_complete:  # the client is gone
            finished.cancel()
        elif finished.body is not None:
            self._complete(context, finished.body)
        else:
            context.pending = finished
            finished.request = context

    def completed(self, request: RequestContext, body: Body) -> None:
        """Takes the body of a pending response."""
        if request.is_complete:  # the client is gone
            return
        self._complete(request, body)
        if self._is_paused:
            # This is not done at once, because the caller is handling another request.
            asyncio.get_running_loop().call_soon(self._resume)

    # Responses

    def _complete(self, context: RequestContext, response: Body | None) -> None:
        queue = self._waiting
        if self._server.quotas.is_active:
            response = self._server.quotas.throttled(context, response)
        context.is_complete = True
        # The pending response and the request refer to each other, and would stay until the garbage collector runs.
        context.pending = None
        now = self._clock.monotonic()
        if len(queue) == 1:  # the usual case
            assert queue[0] is context
            queue.clear()
            context.observe_waited(now, now)
            if response is not None:
                self._send(context, response)
            return
        context.response = response
        context.completed_at = now
        while queue and queue[0].is_complete:
            first = queue.popleft()
            first.observe_waited(first.completed_at, now)
            if first.response is not None:
                self._send(first, first.response)

    def _send(self, context: RequestContext, response: Body) -> None:
        connection = self._connection
        if connection is None:
            return
        self._sending = context.times
        gathered = self._gathered
        if (
            gathered is not None and len(response) == 1 and type(part := response[0]) is not Slice
        ):  # the usual case
            if context.has_tagged_response_header:
                gathered += _TAGGED_RESPONSE_HEAD.pack(len(part) + 5, context.correlation_id)
            else:
                gathered += _RESPONSE_HEAD.pack(len(part) + 4, context.correlation_id)
            gathered += part  # type: ignore[arg-type]
            if len(gathered) > GATHERED_BYTES_MAX:
                self._send_gathered()
            return
        size = 4
        for part in response:
            size += part.size if type(part) is Slice else len(part)
        head = bytearray(_RESPONSE_HEAD.size)
        if context.has_tagged_response_header:
            head.append(0)
            size += 1
        _RESPONSE_HEAD.pack_into(head, 0, size, context.correlation_id)
        try:
            for part in response:
                if type(part) is not Slice:
                    head += part  # type: ignore[arg-type]
                elif part.size < SENT_FROM_FILE_MIN:
                    head += read_whole(part)
                    if len(head) > GATHERED_BYTES_MAX:
                        self._send_gathered()
                        connection.send(head)
                        head = bytearray()
                else:
                    self._send_gathered()
                    connection.send(head)
                    connection.send_file(part.file, part.position, part.size)
                    if connection.unsent_bytes:
                        self._note_unsent()
                    head = bytearray()
        except OSError as error:
            # The response's size may have been sent, so no error can follow. The next read of the log reports the
            # reason.
            self._fail(f"records cannot be read: {error}")
            return
        if not head:
            return
        gathered = self._gathered  # a new buffer if the last one was sent
        if gathered is None:
            connection.send(head)
            return
        gathered += head
        if len(gathered) > GATHERED_BYTES_MAX:
            self._send_gathered()

    # Back pressure

    def _must_pause(self) -> bool:
        if self._is_exclusive or self._muted is not None or len(self._waiting) >= WAITING_MAX:
            return True
        return self._connection is not None and self._connection.unsent_bytes > SEND_BYTES_HIGH

    def mute(self, seconds: float) -> None:
        """Reads nothing for a time, because the client is over a quota; a longer earlier time stays."""
        loop = asyncio.get_running_loop()
        if self._muted is None or self._muted.when() < loop.time() + seconds:
            if self._muted is not None:
                self._muted.cancel()
            self._muted = loop.call_later(seconds, self._unmute)
            self._pause()

    def _unmute(self) -> None:
        self._muted = None
        self._resume()

    def _pause(self) -> None:
        if not self._is_paused and self._connection is not None:
            self._is_paused = True
            self._connection.pause_reading()

    def _resume(self) -> None:
        """Handles received requests and then reads more, unless there is still a reason to wait."""
        if self._connection is None or self._is_held or self._must_pause():
            return
        if self._frames.growth_bytes:
            return  # `memory_granted` will be called
        was_paused, self._is_paused = self._is_paused, False
        self._pump()
        if was_paused and not self._is_paused and self._connection is not None:
            self._connection.resume_reading()

    def _tell_request(self, context: RequestContext) -> None:
        self._server.request_events.debug(
            "request",
            peer=self.peer_address,
            api=API_INDEX[context.api_key].name if context.api_key in API_INDEX else context.api_key,
            version=context.api_version,
            client=context.client_id or "",
            bytes=len(context.body),
        )

    def cannot_encode(self, context: RequestContext, error: EncodeError) -> None:
        self._server.events.error("a response cannot be encoded", api_key=context.api_key, error=error)
        self._fail(str(error))

    def _fail(self, why: str, protocol: str | None = None) -> None:
        if protocol is not None:
            text, why = (
                f"connection closed: {protocol} was sent to a listener that does not speak it",
                _ADVICE[protocol],
            )
        else:
            text = "connection closed"
        self._server.connection_events.warn(text, peer=self.peer_address, listener=self.listener, why=why)
        if self._connection is not None:
            self._connection.abort()
