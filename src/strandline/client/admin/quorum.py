"""Admin calls that change the voters of the controllers' quorum (KIP-853), and forget brokers."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.client.admin.calls import AdminBase, check
from strandline.wire.api.k64_unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from strandline.wire.api.k80_add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from strandline.wire.api.k81_remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


class QuorumAdmin(AdminBase):
    """The calls about voters."""

    async def add_raft_voter(
        self,
        voter_id: int,
        directory_id: bytes,
        listeners: Iterable[tuple[str, str, int]],
        *,
        timeout: float | None = None,
    ) -> None:
        """Makes a controller a voter; its listeners are (name, host, port)."""
        deadline = self._deadline(timeout)
        endpoints = tuple(Listener(name=name, host=host, port=port) for name, host, port in listeners)

        async def once() -> None:
            request = AddRaftVoterRequest(
                cluster_id=self._cluster.metadata.cluster_id,
                timeout_ms=self._timeout_ms(deadline),
                voter_id=voter_id,
                voter_directory_id=directory_id,
                listeners=endpoints,
            )
            response = await self._call_controller(request, AddRaftVoterResponse, deadline)
            check(response.error_code, response.error_message, f"voter {voter_id}")

        await self._retry(once, deadline)

    async def remove_raft_voter(
        self, voter_id: int, directory_id: bytes, *, timeout: float | None = None
    ) -> None:
        """Takes a controller out of the voters."""
        deadline = self._deadline(timeout)

        async def once() -> None:
            request = RemoveRaftVoterRequest(
                cluster_id=self._cluster.metadata.cluster_id,
                voter_id=voter_id,
                voter_directory_id=directory_id,
            )
            response = await self._call_controller(request, RemoveRaftVoterResponse, deadline)
            check(response.error_code, response.error_message, f"voter {voter_id}")

        await self._retry(once, deadline)

    async def unregister_broker(self, node_id: int, *, timeout: float | None = None) -> None:
        """Has the controllers forget a broker that is stopped for good."""
        deadline = self._deadline(timeout)

        async def once() -> None:
            request = UnregisterBrokerRequest(broker_id=node_id)
            response = await self._call_controller(request, UnregisterBrokerResponse, deadline)
            check(response.error_code, response.error_message, f"broker {node_id}")

        await self._retry(once, deadline)
