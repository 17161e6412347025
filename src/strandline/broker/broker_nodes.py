"""Connections to the other brokers of the cluster, on the listener that they speak to each other on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strandline.broker.nodes import Peer
from strandline.wire.schema import Request

if TYPE_CHECKING:
    from strandline.broker.broker import Broker


class BrokerPeers:
    def __init__(self, broker: Broker, purpose: str) -> None:
        self._broker = broker
        self._client_id = f"{purpose}-{broker.node_id}"
        self._peers: dict[int, Peer] = {}

    async def call(self, node_id: int, request: Request, version: int, seconds: float) -> Any:
        """The response; ChannelClosed, OSError or TimeoutError if there is none."""
        return await self._peer(node_id).call(request, version, seconds)

    def _peer(self, node_id: int) -> Peer:
        state = self._broker.image.brokers.get(node_id)
        endpoint = None if state is None else state.endpoint(self._broker.config.inter_broker_listener_name)
        if endpoint is None:
            raise ConnectionError(f"broker {node_id} has no address")
        peer = self._peers.get(node_id)
        if peer is None or (peer.host, peer.port) != (endpoint.host, endpoint.port):
            if peer is not None:
                peer.close()
            peer = Peer(self._broker.network, self._client_id, endpoint.host, endpoint.port)
            self._peers[node_id] = peer
        return peer

    def stop(self) -> None:
        for peer in self._peers.values():
            peer.close()
