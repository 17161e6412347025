"""A client's connection: frames in, answers out, in the order of the requests.

1. Requests are handled in the order in which they arrive. One whose handler returned a coroutine holds up the next
   until it is done, so that two writes of one connection never overtake each other; one that merely waits (a long
   poll, acknowledgements) does not.
2. Answers leave in the order of their requests. A long poll that waits is answered with what there is when
   ApiVersions comes behind it: with that a follower ends a poll that does not name everything it wants by now.
3. Nothing is read that could not be handled: while such a coroutine runs, and above SEND_BYTES_HIGH unsent bytes or
   WAITING_MAX waiting requests, the socket is paused. A peer that does not read its answers stops itself.
4. A large request is charged to the node's memory before it is received; where there is no room the socket waits.
5. Bytes that make no sense close this connection, with one line in the log, and touch nothing else.
"""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from struct import Struct
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, Protocol

from strandline.broker.server.pending_response import Body, Later
from strandline.groups.members import Caller
from strandline.ports.network import Connection
from strandline.rpc.frames import BadFrame, FrameReader
from strandline.storage.segment import Slice
from strandline.wire.codec import DecodeError, EncodeError
from strandline.wire.compiler import skip_tags

if TYPE_CHECKING:
    from strandline.broker.api.offset_commit_template import CommitPattern
    from strandline.broker.broker import Broker

SEND_BYTES_HIGH: Final = 1024 * 1024
WAITING_MAX: Final = 100
GATHERED_BYTES_MAX: Final = 64 * 1024
# Below this a region of a file is read and sent with what is around it: the system calls cost more than the copy.
SENT_FROM_FILE_MIN: Final = 16 * 1024

_API_VERSIONS: Final = 18
_HEADER: Final = Struct(">hhih")
_CLIENT_ID_SIZE: Final = Struct(">h")
_ANSWER_HEAD: Final = Struct(">ii")
_ANSWER_HEAD_WITH_TAGS: Final = Struct(">iix")

# What a handler's coroutine ends with: an answer, or a promise of one where all that is left to do is to wait.
Outcome = Body | None | asyncio.Future[Body | None] | Later
Answer = Body | None | Awaitable[Outcome] | Later


class RequestContext:
    """What a handler knows of a request beside its message, and what its connection knows of the answer."""

    __slots__ = (
        "answer",
        "answers_with_tags",
        "api_key",
        "api_version",
        "body",
        "connection",
        "correlation_id",
        "is_answered",
        "position",
        "result",
    )

    def __init__(
        self,
        connection: ClientConnection,
        api_key: int,
        api_version: int,
        correlation_id: int,
        body: memoryview,
        position: int,
        answers_with_tags: bool,
    ) -> None:
        self.connection = connection
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.body = body
        self.position = position  # where the message begins, behind the header
        self.answers_with_tags = answers_with_tags  # whether the answer's header has tagged fields
        self.answer: Body | None = None  # while it waits for an earlier one
        self.is_answered = False
        self.result: asyncio.Future[Body | None] | Later | None = None  # what it merely waits for

    @property
    def client_id(self) -> str | None:
        (size,) = _CLIENT_ID_SIZE.unpack_from(self.body, _HEADER.size - _CLIENT_ID_SIZE.size)
        text = self.body[_HEADER.size : _HEADER.size + size]
        return str(text, "utf-8", "replace") if size >= 0 else None

    def caller(self) -> Caller:
        """Who asks, as the groups' coordinator notes it."""
        host = self.connection.peer_address.rpartition(":")[0].strip("[]")
        return Caller(self.client_id or "", f"/{host}", self.api_version)


class Dispatch(Protocol):
    """What the handlers' table offers: see `handlers.Handlers`."""

    flexible: frozenset[tuple[int, int]]  # keys and versions whose headers have tagged fields

    def handle(self, context: RequestContext) -> Answer: ...


class ClientConnection:
    def __init__(
        self, broker: Broker, listener: str, request_bytes_max: int, *, is_controller_listener: bool = False
    ) -> None:
        self._broker = broker
        self.listener = listener
        self.is_controller_listener = is_controller_listener
        # The broker at the other end, if it is one that the controller watches over.
        self.watched_broker: int | None = None
        # Ends the long poll that waits here, if one does.
        self.end_long_poll: Callable[[], None] | None = None
        self._frames = FrameReader(request_bytes_max)
        self._connection: Connection | None = None
        self._waiting: deque[RequestContext] = deque()
        self._is_exclusive = False  # a coroutine of this connection is running
        self._is_paused = False
        self._gathered: bytearray | None = None  # answers, while requests that came together are handled
        self._is_due = False  # what was received is handled at the end of this turn of the loop
        self._is_held = False  # over the limit of connections: not served yet
        self._charged = 0
        self.last_active = 0.0
        self.software = ("unknown", "unknown")  # name and version, as ApiVersions 3 and later say
        self.buffer = self._frames.buffer
        # How to read the next commit, if it is like the last ones, and what was like the last one that was decoded.
        self.commit_pattern: CommitPattern | None = None
        self.commit_likeness: tuple[object, ...] = ()

    @property
    def peer_address(self) -> str:
        return self._connection.peer_address if self._connection is not None else "gone"

    # Called by the network

    def connected(self, connection: Connection) -> None:
        self._connection = connection
        self.last_active = self._broker.clock.monotonic()
        verdict = self._broker.connections.admit(self)
        if verdict == "hold":
            self._is_held = True
            self._pause()
        elif verdict == "refuse":
            connection.abort()

    def received(self, size: int) -> None:
        if self._frames.received(size):
            if not self._is_due:
                self._is_due = self._broker.turns.defers(self)
                if not self._is_due:
                    self._pump()
        elif self._frames.is_full:
            self._pump()  # a large request, or one that is to be received into a buffer of its own
        else:
            self.last_active = self._broker.clock.monotonic()

    def handle_received(self) -> None:
        """What came in this turn of the loop; the answers wait for `send_answers`."""
        self._is_due = False
        if self._gathered is None:
            self._gathered = bytearray()
        try:
            self._pump()
        except Exception as error:
            # A fault of ours; the other connections of this turn must not wait for it.
            self._broker.events.error("a request failed", peer=self.peer_address, error=repr(error))
            self._fail(repr(error))

    def send_answers(self) -> None:
        gathered, self._gathered = self._gathered, None
        if gathered and self._connection is not None:
            self._connection.send(gathered)

    def drained(self) -> None:
        self.last_active = self._broker.clock.monotonic()
        self._resume()

    def lost(self, error: Exception | None) -> None:
        self._connection = None
        self._broker.memory.forget(self)
        self._release_charge()
        self._broker.connections.ended(self)
        if self.watched_broker is not None:
            self._broker.watched_broker_lost(self.watched_broker)
        for waiting in self._waiting:
            waiting.is_answered = True
            if isinstance(waiting.result, Later):
                waiting.result.abandon()
            elif waiting.result is not None:
                waiting.result.cancel()
        self._waiting.clear()

    # Called by the broker

    def serve(self) -> None:
        """A place has become free for a connection that was held."""
        self._is_held = False
        self._resume()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def end_idle(self) -> None:
        """Closes it; a peer that has not taken its answers for so long is not waited for."""
        if self._connection is not None:
            if self._connection.unsent_bytes:
                self._connection.abort()
            else:
                self._connection.close()

    @property
    def is_idle(self) -> bool:
        return not self._waiting and not self._is_exclusive

    def memory_granted(self) -> None:
        """Room has become free for the large request that this connection waits to receive."""
        self._charged = self._frames.wanted
        self._frames.begin_large()
        self._resume()

    # Requests

    def _pump(self) -> None:
        """Handles the complete requests that are here, as long as the connection may go on."""
        self.last_active = self._broker.clock.monotonic()
        is_outermost = self._gathered is None
        if is_outermost:
            self._gathered = bytearray()
        frames = self._frames
        try:
            while not self._is_paused and self._connection is not None:
                frame = frames.next_frame()
                if frame is None:
                    if frames.wanted:
                        self._want_memory(frames.wanted)
                    return
                self._handle(frame)
                if self._charged and not self._is_exclusive:
                    self._release_charge()
                if self._must_pause():
                    self._pause()
                if not frames.small_end:
                    return  # as it is with most
        except (BadFrame, DecodeError) as error:
            self._send_gathered()
            self._fail(str(error))
        finally:
            if is_outermost:
                self._send_gathered()
                self._gathered = None

    def _send_gathered(self) -> None:
        """Answers to requests that came together leave together: a system call costs more than the answer."""
        gathered = self._gathered
        if gathered and self._connection is not None:
            self._gathered = bytearray()
            self._connection.send(gathered)

    def _want_memory(self, size: int) -> None:
        if self._broker.memory.charge(size, self):
            self._charged = size
            self._frames.begin_large()
        else:
            self._pause()

    def _release_charge(self) -> None:
        if self._charged:
            charged, self._charged = self._charged, 0
            self._broker.memory.release(charged)

    def _handle(self, frame: memoryview) -> None:
        context = self._read_header(frame)
        self._broker.counters.values["requests"] += 1
        if self.end_long_poll is not None and context.api_key == _API_VERSIONS:
            self.end_long_poll()
        try:
            answer = self._broker.handlers.handle(context)
        except EncodeError as error:
            self.cannot_answer(context, error)
            return
        if not self._waiting:
            if answer is None:
                return
            if type(answer) is tuple or type(answer) is list:  # most requests: nothing to wait for
                self._send(context, answer)
                return
        self._waiting.append(context)
        if isinstance(answer, CoroutineType):
            self._is_exclusive = True
            self._broker.tasks.start(self._finish(context, answer))
        else:
            self._take(context, answer)  # type: ignore[arg-type]

    def _read_header(self, frame: memoryview) -> RequestContext:
        if len(frame) < _HEADER.size:
            raise DecodeError(f"a request of {len(frame)} bytes")
        api_key, api_version, correlation_id, client_id_size = _HEADER.unpack_from(frame, 0)
        position = _HEADER.size
        if client_id_size > 0:
            position += client_id_size
            if position > len(frame):
                raise DecodeError(f"a client id of {client_id_size} bytes in a request of {len(frame)}")
        is_flexible = (api_key, api_version) in self._broker.handlers.flexible
        if is_flexible:
            try:
                position = skip_tags(frame, position) if frame[position] else position + 1
            except IndexError as error:
                raise DecodeError("a request header that ends too early") from error
        # Never for ApiVersions, so that anyone can read it.
        has_tags = is_flexible and api_key != _API_VERSIONS
        return RequestContext(self, api_key, api_version, correlation_id, frame, position, has_tags)

    async def _finish(self, waiting: RequestContext, work: Coroutine[Any, Any, Outcome]) -> None:
        try:
            self._take(waiting, await work)
        except DecodeError as error:
            self._fail(str(error))
        except EncodeError as error:
            self.cannot_answer(waiting, error)
        finally:
            self._is_exclusive = False
            self._release_charge()
        self._resume()

    def _take(self, waiting: RequestContext, answer: Outcome) -> None:
        if isinstance(answer, Later):
            if waiting.is_answered:  # the client has gone
                answer.abandon()
            elif answer.given is not None:
                self._answered(waiting, answer.given)
            else:
                waiting.result = answer
                answer.request = waiting
        elif isinstance(answer, asyncio.Future):
            self._wait_for(waiting, answer)
        else:
            self._answered(waiting, answer)

    def given(self, waiting: RequestContext, answer: Body) -> None:
        """What a request has waited for is known."""
        if waiting.is_answered:  # the client has gone
            return
        self._answered(waiting, answer)
        if self._is_paused:
            # Not at once: whoever gives it is in the midst of handling another request.
            asyncio.get_running_loop().call_soon(self._resume)

    def _wait_for(self, waiting: RequestContext, result: asyncio.Future[Body | None]) -> None:
        if waiting.is_answered:  # the client has gone
            result.cancel()
            return
        waiting.result = result
        result.add_done_callback(lambda done: self._finished(waiting, done))

    def _finished(self, waiting: RequestContext, done: asyncio.Future[Body | None]) -> None:
        if done.cancelled() or waiting.is_answered:
            return
        error = done.exception()
        if isinstance(error, EncodeError):
            self.cannot_answer(waiting, error)
            return
        if error is not None:
            self._broker.failed(error)
            self._fail(repr(error))
            return
        self._answered(waiting, done.result())
        if self._is_paused:
            self._resume()

    # Answers

    def _answered(self, waiting: RequestContext, answer: Body | None) -> None:
        queue = self._waiting
        waiting.is_answered = True
        if len(queue) == 1:  # as it is with most
            assert queue[0] is waiting
            queue.clear()
            if answer is not None:
                self._send(waiting, answer)
            return
        waiting.answer = answer
        while queue and queue[0].is_answered:
            first = queue.popleft()
            if first.answer is not None:
                self._send(first, first.answer)

    def _send(self, context: RequestContext, answer: Body) -> None:
        connection = self._connection
        if connection is None:
            return
        gathered = self._gathered
        if gathered is not None and len(answer) == 1 and type(part := answer[0]) is not Slice:  # as most are
            if context.answers_with_tags:
                gathered += _ANSWER_HEAD_WITH_TAGS.pack(len(part) + 5, context.correlation_id)
            else:
                gathered += _ANSWER_HEAD.pack(len(part) + 4, context.correlation_id)
            gathered += part  # type: ignore[arg-type]
            if len(gathered) > GATHERED_BYTES_MAX:
                self._send_gathered()
            return
        size = 4
        for part in answer:
            size += part.size if type(part) is Slice else len(part)
        head = bytearray(_ANSWER_HEAD.size)
        if context.answers_with_tags:
            head.append(0)
            size += 1
        _ANSWER_HEAD.pack_into(head, 0, size, context.correlation_id)
        try:
            for part in answer:
                if type(part) is not Slice:
                    head += part  # type: ignore[arg-type]
                elif part.size < SENT_FROM_FILE_MIN:
                    head += _read(part)
                    if len(head) > GATHERED_BYTES_MAX:
                        self._send_gathered()
                        connection.send(head)
                        head = bytearray()
                else:
                    self._send_gathered()
                    connection.send(head)
                    connection.send_file(part.file, part.position, part.size)
                    head = bytearray()
        except OSError as error:
            # The answer's size may have been sent, so nothing else can follow. The next read of the log tells the disk.
            self._fail(f"records cannot be read: {error}")
            return
        if not head:
            return
        gathered = self._gathered  # another one, if what was there has been sent
        if gathered is None:
            connection.send(head)
            return
        gathered += head
        if len(gathered) > GATHERED_BYTES_MAX:
            self._send_gathered()

    # Pushing back

    def _must_pause(self) -> bool:
        if self._is_exclusive or len(self._waiting) >= WAITING_MAX:
            return True
        return self._connection is not None and self._connection.unsent_bytes > SEND_BYTES_HIGH

    def _pause(self) -> None:
        if not self._is_paused and self._connection is not None:
            self._is_paused = True
            self._connection.pause_reading()

    def _resume(self) -> None:
        """Goes on with requests that are here already, then reads more, unless there is still a reason to wait."""
        if self._connection is None or self._is_held or self._must_pause():
            return
        if self._frames.wanted and not self._charged:
            return
        was_paused, self._is_paused = self._is_paused, False
        self._pump()
        if was_paused and not self._is_paused and self._connection is not None:
            self._connection.resume_reading()

    def cannot_answer(self, context: RequestContext, error: EncodeError) -> None:
        self._broker.events.error("an answer cannot be encoded", api_key=context.api_key, error=error)
        self._fail(str(error))

    def _fail(self, why: str) -> None:
        self._broker.events.warn("connection closed", peer=self.peer_address, why=why)
        if self._connection is not None:
            self._connection.abort()


def _read(part: Slice) -> bytes:
    data = part.file.read_at(part.position, part.size)
    if len(data) != part.size:
        raise OSError(errno.EIO, "the file is shorter than the region that was promised", part.file.path)
    return data
