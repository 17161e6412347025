"""The channel to the active controller: a call if it is in this process, otherwise a connection to its listener.

`call` sends requests of the controller's own APIs. `forward` wraps a client's request in an Envelope (KIP-590), so that
the controller's response differs from an error of the forwarding. Both look for the controller again until their time
is up.

Responses of a connection come in order, so each purpose has its own connection: a heartbeat does not wait for another
request's commit, and closing the connection of a client's request that is given up does not affect those of other
clients. A client's request is not sent again while the controller may still be working on it: the second of two
creations would be refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import Any, Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.metadata.controller_apis import RequestOrigin, decide, decide_for
from strandline.broker.metadata.controller_runtime import ControllerRuntime
from strandline.broker.metadata.raft_node import RaftNode
from strandline.broker.node_context import NodeContext
from strandline.broker.nodes import NodeClient, NodeClients
from strandline.rpc.channel import ChannelClosed, response_class
from strandline.security.principal import ANONYMOUS, Principal
from strandline.wire.api.k58_envelope import EnvelopeRequest
from strandline.wire.api.k62_broker_registration import BrokerRegistrationRequest
from strandline.wire.api.k63_broker_heartbeat import BrokerHeartbeatRequest
from strandline.wire.codec import DecodeError, decode_from, encode, encode_into
from strandline.wire.error_codes import error_codes
from strandline.wire.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from strandline.wire.records.principal import DefaultPrincipalData
from strandline.wire.schema import Request

SECONDS_MAX: Final = 30.0
_RETRY_S: Final = 0.02
_ATTEMPT_S: Final = 5.0
# A controller that is alive needs some milliseconds, even if the client's timeout is shorter.
_ATTEMPT_MIN_S: Final = 0.5
# The time in which a former controller may still respond with its decisions.
_LAST_RESPONSES_S: Final = 0.2
# The number of connections for clients' requests; with more requests at a time, some share one.
_FORWARDING_MAX: Final = 8
_HEARTBEATS: Final = "heartbeats"
_CHANGES: Final = "changes"


class ControllerChannel:
    def __init__(self, node: NodeContext, quorum: RaftNode, runtime: ControllerRuntime | None) -> None:
        self._node_id = node.node_id
        self._clock = node.clock
        self._quorum = quorum
        self._runtime = runtime
        # Clients by controller and purpose.
        self._clients: NodeClients[tuple[int, str]] = NodeClients(
            node.network_to_controllers, f"broker-{node.node_id}"
        )
        self._forwarding = [0] * _FORWARDING_MAX  # requests under way, by connection

    async def call(self, request: Request, version: int, seconds: float = SECONDS_MAX) -> Any:
        """Returns the response of the active controller; raises KafkaError with NOT_CONTROLLER or REQUEST_TIMED_OUT."""
        attempt_s = min(max(seconds, _ATTEMPT_MIN_S), _ATTEMPT_S)
        return await self._until(seconds, lambda _: self._call_once(request, version, attempt_s))

    async def forward(
        self,
        request: Request,
        version: int,
        origin: RequestOrigin | None,
        seconds: float = SECONDS_MAX,
    ) -> Any:
        """Returns the response to a client's request, which the controller authorizes; without an origin to one of this
        node."""
        return await self._until(
            seconds, lambda left_s: self._forward_once(request, version, origin, max(left_s, _ATTEMPT_MIN_S))
        )

    async def _until(self, seconds: float, attempt: Callable[[float], Awaitable[Any]]) -> Any:
        clock = self._clock
        deadline = clock.monotonic() + seconds
        while True:
            try:
                return await attempt(deadline - clock.monotonic())
            except KafkaError as error:
                if error.code != ErrorCode.NOT_CONTROLLER or clock.monotonic() >= deadline:
                    raise
            except (OSError, TimeoutError, ChannelClosed) as error:
                if clock.monotonic() >= deadline:
                    raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "No controller responds.") from error
            await asyncio.sleep(_RETRY_S)

    async def _call_once(self, request: Request, version: int, seconds: float) -> Any:
        runtime = self._runtime
        if runtime is not None and runtime.is_active:
            return await decide(runtime, request, version, ANONYMOUS)
        is_heartbeat = isinstance(request, BrokerRegistrationRequest | BrokerHeartbeatRequest)
        client = self._leader(_HEARTBEATS if is_heartbeat else _CHANGES)
        response = await client.call(request, version, seconds)
        if getattr(response, "error_code", 0) == ErrorCode.NOT_CONTROLLER:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        return response

    async def _forward_once(
        self, request: Request, version: int, origin: RequestOrigin | None, seconds: float
    ) -> Any:
        runtime = self._runtime
        if origin is None:
            return await self._call_as_client(request, version, seconds)
        if runtime is not None and runtime.is_active:
            return await decide_for(runtime, request, version, origin)
        envelope = EnvelopeRequest(
            request_data=_with_header(request, version, origin.client_id),
            request_principal=encode_principal(origin.principal),
            client_host_address=_address_bytes(origin.host),
        )
        response = await self._call_in_slot(envelope, 0, seconds)
        if response.error_code != ErrorCode.NONE or response.response_data is None:
            raise KafkaError(response.error_code or ErrorCode.UNKNOWN_SERVER_ERROR)
        data = response.response_data
        header_version = response_header_version(request.API_KEY, request.FLEXIBLE, version)
        _, position = decode_from(ResponseHeader, header_version, data, 0)
        inner, _ = decode_from(response_class(type(request)), version, data, position)
        return inner

    async def _call_as_client(self, request: Request, version: int, seconds: float) -> Any:
        """Sends a request of a client API for this node itself, which the controller identifies by the connection."""
        runtime = self._runtime
        if runtime is not None and runtime.is_active:
            return await decide(runtime, request, version, ANONYMOUS)
        response = await self._call_in_slot(request, version, seconds)
        if ErrorCode.NOT_CONTROLLER in error_codes(response):
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        return response

    async def _call_in_slot(self, request: Request, version: int, seconds: float) -> Any:
        slot = self._forwarding.index(min(self._forwarding))
        self._forwarding[slot] += 1
        try:
            return await self._leader(f"forwarding {slot}").call(request, version, seconds)
        finally:
            self._forwarding[slot] -= 1

    def _leader(self, purpose: str) -> NodeClient:
        quorum = self._quorum
        leader_id = quorum.leader_id
        address = quorum.addresses.of(leader_id)
        if quorum.is_stranger:
            raise KafkaError(
                ErrorCode.INCONSISTENT_CLUSTER_ID,
                "The voters of the metadata quorum belong to another cluster.",
            )
        if address is None or leader_id == self._node_id:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "The active controller is not known at the moment.")
        return self._clients.at((leader_id, purpose), address.host, address.port)

    def changed(self) -> None:
        """Follows a change of the leader: requests to the former one without a response are soon sent again."""
        asyncio.get_running_loop().call_later(_LAST_RESPONSES_S, self._leave_others)

    def _leave_others(self) -> None:
        for key in self._clients.known():
            if key[0] != self._quorum.leader_id:
                self._clients.close(key)

    def stop(self) -> None:
        self._clients.close_all()


def encode_principal(principal: Principal) -> bytes:
    """Encodes a principal as Kafka's DefaultKafkaPrincipalBuilder does: the version, then the message."""
    data = DefaultPrincipalData(
        type=principal.kind, name=principal.name, token_authenticated=principal.is_token_authenticated
    )
    return (0).to_bytes(2, "big") + bytes(encode(data, 0))


def decode_principal(data: bytes | None) -> Principal:
    """Returns the principal of a forwarded request; ANONYMOUS if a node of an older version has named none."""
    if data is None:
        return ANONYMOUS
    if data[:2] != b"\0\0":
        raise DecodeError("the principal has an unknown version")
    found, _ = decode_from(DefaultPrincipalData, 0, data, 2)
    return Principal(found.type, found.name, found.token_authenticated)


def _address_bytes(host: str) -> bytes:
    try:
        return ip_address(host).packed
    except ValueError:
        return b"\x7f\x00\x00\x01"


def _with_header(request: Request, version: int, client_id: str) -> bytes:
    header = RequestHeader(
        request_api_key=request.API_KEY, request_api_version=version, correlation_id=0, client_id=client_id
    )
    data = encode(header, request_header_version(request.FLEXIBLE, version))
    encode_into(request, version, data)
    return bytes(data)
