"""The effect of each kind of fault on the request that it strikes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from struct import Struct
from types import CoroutineType
from typing import Any, Final, cast

from strandline.base.errors import KafkaError
from strandline.broker.api.services import Services
from strandline.broker.replication.fetch_sessions import NO_SESSION, SessionPartition
from strandline.broker.server.connection import ClientConnection
from strandline.broker.server.pending_response import Finished, Handled, PendingResponse, encode_counted
from strandline.broker.server.request_context import Body, RequestContext, read_whole
from strandline.node.faults.refusal import merged, refusal, split, with_code
from strandline.node.faults.request_fault import RequestFault
from strandline.node.faults.rule import FaultRule
from strandline.node.faults.subject import message_class
from strandline.rpc.channel import response_class
from strandline.storage.segment import Slice
from strandline.wire.api.k00_produce import ProduceRequest
from strandline.wire.api.k01_fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from strandline.wire.api.k03_metadata import MetadataRequest, MetadataResponse
from strandline.wire.codec import decode, encode
from strandline.wire.schema import Message, Request

_INT32: Final = Struct(">i")
_FRAME: Final = Struct(">ii")

# Has the broker's own handler apply a request.
Apply = Callable[[RequestContext], Handled]
# Sends a response; None sends nothing.
Done = Callable[[Body | None], None]
# Gets the response of the handler, and calls `Done` with the response to send, now or later.
Effect = Callable[[Body | None, Done], None]


def strike(fault: RequestFault, context: RequestContext, apply: Apply, services: Services) -> Handled:
    """Applies a fault to a request, and returns what a handler returns."""
    rule, connection = fault.rule, cast(ClientConnection, context.connection)
    match rule.kind:
        case "error":
            return _error(rule, context, apply, services)
        case "drop_request" | "black_hole":
            fault.silenced.add(connection)
            return None
        case "drop_response":
            return _after(apply(context), lambda _, done: _silence(fault, connection, done))
        case "disconnect":
            if rule.applied:
                return _after(apply(context), lambda _, done: _disconnect(fault, connection, done))
            _disconnect(fault, connection, lambda _: None)
            return None
        case "delay":
            return _delay(rule, context, apply)
        case "throttle":
            return _after(apply(context), lambda body, done: done(_throttled(rule, context, body)))
        case "tear":
            return _after(apply(context), lambda body, done: _tear(fault, context, body, done))
        case "barrier":
            return _barrier(fault, context, apply)
        case _ as unknown:
            raise AssertionError(f"no such fault: {unknown}")


# After a request is applied


class _PendingEffect(PendingResponse):
    """A response that is not known yet, and that an effect gets when it is."""

    __slots__ = ("_effect", "connection", "inner", "is_done")

    def __init__(self, effect: Effect) -> None:
        super().__init__()
        self._effect = effect
        self.inner: PendingResponse | None = None
        self.is_done = False
        # The inner response is given this object as its request, and calls `request.connection.completed`.
        self.connection = self

    def completed(self, request: object, body: Body) -> None:
        """Takes the inner response, which is known now."""
        self.inner = None
        self._effect(body, self.finish)

    def finish(self, body: Body | None) -> None:
        self.is_done = True
        self.complete(body)  # type: ignore[arg-type]  # None: nothing is sent

    def cancel(self) -> None:
        super().cancel()
        if self.inner is not None:
            self.inner.cancel()


def _after(handled: Handled, effect: Effect) -> Handled:
    if isinstance(handled, CoroutineType):
        return _after_awaited(handled, effect)
    return _after_finished(cast(Finished, handled), effect)


async def _after_awaited(work: Coroutine[Any, Any, Finished], effect: Effect) -> Finished:
    return _after_finished(await work, effect)


def _after_finished(finished: Finished, effect: Effect) -> Finished:
    later = _PendingEffect(effect)
    if isinstance(finished, PendingResponse):
        if finished.body is None:
            later.inner = finished
            finished.request = later  # type: ignore[assignment]
            return later
        finished = finished.body
    effect(finished, later.finish)
    return later.body if later.is_done else later


def _in_memory(body: Body | None) -> Body | None:
    """Returns a response that can wait: it is read from files, which may be deleted later."""
    if body is None:
        return None
    return (b"".join(read_whole(part) if type(part) is Slice else bytes(part) for part in body),)  # type: ignore[arg-type]


# Kinds


def _detached(context: RequestContext) -> RequestContext:
    """Returns the request with its own copy of its bytes, which stays when the connection reads on."""
    context.body = memoryview(bytes(context.body))
    return context


async def _finished(handled: Handled) -> Finished:
    return await handled if isinstance(handled, CoroutineType) else cast(Finished, handled)


def _delay(rule: FaultRule, context: RequestContext, apply: Apply) -> Handled:
    seconds = rule.milliseconds / 1000
    if rule.applied:

        def later(body: Body | None, done: Done) -> None:
            asyncio.get_running_loop().call_later(seconds, done, _in_memory(body))

        return _after(apply(context), later)

    async def wait() -> Finished:
        await asyncio.sleep(seconds)
        return await _finished(apply(context))

    _detached(context)
    return wait()


def _barrier(fault: RequestFault, context: RequestContext, apply: Apply) -> Handled:
    number = fault.fired
    if fault.rule.applied:

        def hold(body: Body | None, done: Done) -> None:
            copied = _in_memory(body)
            if fault.is_released:
                done(copied)
            else:
                fault.held[number] = lambda: done(copied)

        return _after(apply(context), hold)

    async def wait() -> Finished:
        await released
        return await _finished(apply(context))

    released: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    fault.held[number] = lambda: None if released.done() else released.set_result(None)
    _detached(context)
    return wait()


def _throttled(rule: FaultRule, context: RequestContext, body: Body | None) -> Body | None:
    """Returns the response with a throttle time, and mutes the connection for that time (KIP-219)."""
    context.connection.mute(rule.milliseconds / 1000)
    if not body:
        return body
    if context.api_key == FetchRequest.API_KEY:
        head = bytearray(cast(bytes, body[0]))
        _INT32.pack_into(head, 0, rule.milliseconds)  # the first field of the response
        return (head, *body[1:])
    response = _decoded(context, body)
    response.throttle_time_ms = rule.milliseconds
    return (encode(response, context.api_version),)


def _silence(fault: RequestFault, connection: ClientConnection, done: Done) -> None:
    fault.silenced.add(connection)
    if fault.is_cleared:  # while the request was applied
        connection.abort()
    done(None)


def _disconnect(fault: RequestFault, connection: ClientConnection, done: Done) -> None:
    fault.silenced.add(connection)  # requests that are here already are not handled
    connection.abort()
    done(None)


def _tear(fault: RequestFault, context: RequestContext, body: Body | None, done: Done) -> None:
    connection = cast(ClientConnection, context.connection)
    whole = _in_memory(body) or (b"",)
    tags = b"\0" if context.has_tagged_response_header else b""
    content = tags + bytes(cast(bytes, whole[0]))
    frame = _FRAME.pack(len(content) + 4, context.correlation_id) + content
    fault.silenced.add(connection)
    connection.end_with(frame[: fault.rule.bytes])
    done(None)


def _decoded(context: RequestContext, body: Body) -> Any:
    (data,) = cast(tuple[bytes], _in_memory(body))
    return decode(response_class(message_class(context.api_key)), context.api_version, data)


# Errors


def _error(rule: FaultRule, context: RequestContext, apply: Apply, services: Services) -> Handled:
    if context.api_key == FetchRequest.API_KEY:
        return _fetch_error(rule, context, services)
    if rule.applied or context.api_key == MetadataRequest.API_KEY:
        return _after(apply(context), lambda body, done: done(_changed(rule, context, body)))
    cls = message_class(context.api_key)
    request = decode(cls, context.api_version, context.body, context.position)
    if isinstance(request, ProduceRequest) and request.acks == 0:
        cast(ClientConnection, context.connection).abort()  # as Kafka does where there is no response
        return None
    struck, rest = split(request, rule, services.node.topic_name)
    refused = refusal(struck, context.api_version, rule.code)
    if rest is None:
        return (encode_counted(refused, context),)

    def join(body: Body | None, done: Done) -> None:
        done(
            None if body is None else (encode(merged(refused, _decoded(context, body)), context.api_version),)
        )

    return _after(apply(_reduced(context, rest)), join)


def _reduced(context: RequestContext, request: Request) -> RequestContext:
    """Returns the same request with another message."""
    head = bytes(context.body[: context.position])
    whole = memoryview(head + encode(request, context.api_version))
    return RequestContext(
        context.connection,
        context.api_key,
        context.api_version,
        context.correlation_id,
        whole,
        len(head),
        context.has_tagged_response_header,
        context.times,
    )


def _changed(rule: FaultRule, context: RequestContext, body: Body | None) -> Body | None:
    if body is None:
        return None
    response = _decoded(context, body)
    if isinstance(response, MetadataResponse):
        _refuse_topics(response, rule)
    else:
        with_code(response, rule.code)
    return (encode_counted(response, context),)


def _refuse_topics(response: MetadataResponse, rule: FaultRule) -> None:
    for topic in response.topics:
        if rule.topic in (None, topic.name):
            topic.error_code, topic.partitions = rule.code, ()
    if not response.topics:
        response.error_code = rule.code


def _fetch_error(rule: FaultRule, context: RequestContext, services: Services) -> Handled:
    """Returns a Fetch response whose partitions have the error. The session goes on, so that client and broker agree
    about it."""
    request = decode(FetchRequest, context.api_version, context.body, context.position)
    try:
        fetch = services.fetch_sessions.begin(request, context.api_version, services.clock.monotonic())
    except KafkaError as error:
        refused: Message = FetchResponse(throttle_time_ms=0, error_code=error.code, responses=())
        return (encode_counted(refused, context),)
    name = services.node.topic_name
    responses = []
    for partition in fetch.partitions:
        is_struck = rule.topic in (None, partition.topic or name(partition.topic_id)) and rule.partition in (
            None,
            partition.index,
        )
        if is_struck or not fetch.is_incremental:
            responses.append(_fetched(partition, rule.code if is_struck else 0))
    session_id = NO_SESSION if fetch.session is None else fetch.session.session_id
    response = FetchResponse(throttle_time_ms=0, session_id=session_id, responses=tuple(responses))
    return (encode_counted(response, context),)


def _fetched(partition: SessionPartition, code: int) -> FetchableTopicResponse:
    data = PartitionData(
        partition_index=partition.index,
        error_code=code,
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )
    return FetchableTopicResponse(topic=partition.topic, topic_id=partition.topic_id, partitions=(data,))
