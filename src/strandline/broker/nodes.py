"""Clients of other nodes: one connection to each, which is opened on its first use and again when it is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Any, Final, Generic, TypeVar

from strandline.base.waiting import within
from strandline.broker.node_context import NodeContext
from strandline.controller.image import ClusterImage
from strandline.ports.network import Network
from strandline.rpc.channel import Channel, ChannelClosed
from strandline.telemetry.traffic import Traffic
from strandline.wire.api.k18_api_versions import ApiVersionsRequest
from strandline.wire.records.metadata import BrokerEndpoint
from strandline.wire.schema import Request

CONNECT_SECONDS_MAX: Final = 3.0
_AGAIN_S: Final = 0.005


class NodeClient:
    """A client of one other node. Requests are sent in order on one connection."""

    def __init__(
        self, network: Network, client_id: str, host: str, port: int, traffic: Traffic | None = None
    ) -> None:
        self._network = network
        self._traffic = traffic
        self._client_id = client_id
        self.host = host
        self.port = port
        self._channel: Channel | None = None
        self._connecting: asyncio.Future[None] | None = None
        self._is_closed = False
        self.on_lost: Callable[[], None] | None = None

    async def call(self, message: Request, version: int, seconds: float) -> Any:
        """Returns the response; raises ChannelClosed, OSError or TimeoutError if there is none."""
        channel = self._channel
        if channel is None or not channel.is_open:
            channel = await self._open()
        response = channel.request(message, version)
        # This has a timer of its own, because `within` takes as long as the request.
        timer = asyncio.get_running_loop().call_later(seconds, _time_out, response)
        try:
            return await response
        except TimeoutError:
            # Later requests would not get a response either: the next one tries a new connection.
            channel.close()
            raise
        finally:
            timer.cancel()

    def nudge(self) -> None:
        """Ends a long poll that waits on the other node: see rule 2 of `server.connection`."""
        if self._channel is not None and self._channel.is_open:
            self._channel.request(ApiVersionsRequest(), 0).add_done_callback(_ignore)

    async def _open(self) -> Channel:
        while True:
            if self._channel is not None and self._channel.is_open:
                return self._channel
            if self._is_closed:
                raise ChannelClosed("the connection is no longer wanted")
            if self._connecting is None:
                break
            await asyncio.shield(self._connecting)
        self._connecting = asyncio.get_running_loop().create_future()
        channel = Channel(self._client_id, traffic=self._traffic)
        try:
            await within(CONNECT_SECONDS_MAX, channel.open(self._network, self.host, self.port))
            if self._is_closed:
                raise ChannelClosed("the connection is no longer wanted")
        except (Exception, asyncio.CancelledError):
            channel.close()  # it may have been connected just before the wait ended
            raise
        finally:
            self._connecting.set_result(None)
            self._connecting = None
        self._channel = channel
        channel.on_lost(lambda: self._lost(channel))
        return channel

    def _lost(self, channel: Channel) -> None:
        if self._channel is channel:
            self._channel = None
            if self.on_lost is not None:
                self.on_lost()

    def close(self) -> None:
        """Closes the connection for good: a node with a new address gets a new client."""
        self._is_closed = True
        self.on_lost = None
        if self._channel is not None:
            self._channel.close()
            self._channel = None


def _time_out(response: asyncio.Future[Any]) -> None:
    if not response.done():
        response.set_exception(TimeoutError())


def _ignore(response: asyncio.Future[Any]) -> None:
    if not response.cancelled():
        response.exception()


K = TypeVar("K", bound=Hashable)


class NodeClients(Generic[K]):
    """Clients of other nodes by a key of the caller. A node whose address has changed gets a new client."""

    def __init__(self, network: Network, client_id: str) -> None:
        self._network = network
        self._client_id = client_id
        self._clients: dict[K, NodeClient] = {}

    def at(self, key: K, host: str, port: int) -> NodeClient:
        """Returns the client for this key at this address."""
        client = self._clients.get(key)
        if client is not None and (client.host, client.port) == (host, port):
            return client
        self.close(key)
        client = self._clients[key] = NodeClient(self._network, self._client_id, host, port)
        return client

    def known(self) -> list[K]:
        return list(self._clients)

    def close(self, key: K) -> None:
        client = self._clients.pop(key, None)
        if client is not None:
            client.close()

    def close_all(self) -> None:
        for key in self.known():
            self.close(key)


class BrokerClients:
    """Clients of the other brokers, on the inter-broker listener."""

    def __init__(self, node: NodeContext, purpose: str) -> None:
        self._image = node.image
        self._listener = node.config.inter_broker_listener_name
        self._clients: NodeClients[int] = NodeClients(node.network_to_brokers, f"{purpose}-{node.node_id}")

    async def call(self, node_id: int, request: Request, version: int, seconds: float) -> Any:
        """Returns the response; raises ChannelClosed, OSError or TimeoutError if there is none."""
        endpoint = inter_broker_endpoint(self._image, node_id, self._listener)
        return await self._clients.at(node_id, endpoint.host, endpoint.port).call(request, version, seconds)

    def close(self) -> None:
        self._clients.close_all()


def inter_broker_endpoint(image: ClusterImage, node_id: int, listener: str) -> BrokerEndpoint:
    """Returns the address of a broker on this listener; raises ConnectionError if it has none."""
    state = image.brokers.get(node_id)
    endpoint = None if state is None else state.endpoint(listener)
    if endpoint is None:
        raise ConnectionError(f"broker {node_id} has no address")
    return endpoint


async def is_gone(network: Network, host: str, port: int, seconds: float) -> bool:
    """Returns True if the address refuses connections. A host that does not respond is not gone, only unreachable for
    the moment.

    A process that is being killed loses its connections one by one, its listening socket perhaps last. So an accepted
    connection proves life only once a request on it has a response, and one that breaks is tried again.
    """
    deadline = asyncio.get_running_loop().time() + seconds
    while (left := deadline - asyncio.get_running_loop().time()) > 0:
        channel = Channel("probe")
        try:
            await within(left, channel.open(network, host, port))
            await within(left, channel.request(ApiVersionsRequest(), 0))
        except ConnectionRefusedError:
            return True
        except TimeoutError:
            return False
        except (OSError, ChannelClosed):
            await asyncio.sleep(_AGAIN_S)
        else:
            return False
        finally:
            channel.close()
    return False
