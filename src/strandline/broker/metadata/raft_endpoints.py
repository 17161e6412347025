"""The addresses of the nodes of the metadata quorum: from the configuration, from the voters in the log, or from
responses.

Configured voters have the addresses of the configuration. Otherwise the newest information is used: a leader sends its
endpoints when its epoch begins, and each response of a node that knows the leader has them; a new set of voters
replaces them. A node that knows none of that connects to `controller.quorum.bootstrap.servers`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from strandline.quorum.voters import Endpoint, Voter, VoterSet


class Address(NamedTuple):
    host: str
    port: int


class NodeEndpoint(Protocol):
    """The endpoint of a node, as in every response of the quorum."""

    node_id: int
    host: str
    port: int


class VoterSource(Protocol):
    """The core of the quorum, which knows the latest set of voters in the log."""

    @property
    def voter_set(self) -> VoterSet: ...

    @property
    def has_dynamic_voters(self) -> bool: ...


class RaftEndpoints:
    """The addresses of the nodes to which this one may send quorum requests."""

    def __init__(self, listener_name: str, bootstrap: tuple[Address, ...], own: Endpoint | None) -> None:
        self.listener_name = listener_name
        # This node's own address for the others; None on a broker.
        self.own = own
        self._bootstrap = bootstrap
        self._voters: VoterSource
        self._learned: dict[int, Address] = {}
        # The addresses of the voters of the last set: a leader goes on leading for a while after its removal.
        self._former: dict[int, Address] = {}

    def follow(self, voters: VoterSource) -> None:
        """Begins to read the voters of this core."""
        self._voters = voters
        self.voters_changed()

    def of(self, node_id: int) -> Address | None:
        """Returns the address of a node; None if it is not known."""
        learned = self._learned.get(node_id)
        voter = self._voters.voter_set.by_id(node_id)
        if learned is not None and (voter is None or self._voters.has_dynamic_voters):
            return learned
        return self._former.get(node_id) if voter is None else self.of_voter(voter)

    def of_voter(self, voter: Voter) -> Address | None:
        """Returns the voter's address on the listener that this node uses, if it has one."""
        for endpoint in voter.endpoints:
            if endpoint.listener == self.listener_name:
                return Address(endpoint.host, endpoint.port)
        return Address(*voter.endpoints[0][1:]) if voter.endpoints else None

    def learn(self, node_id: int, host: str, port: int) -> None:
        if host and port and node_id >= 0:
            self._learned[node_id] = Address(host, port)

    def learn_from(self, endpoints: Iterable[NodeEndpoint]) -> None:
        """Learns the address of the leader from a response."""
        for endpoint in endpoints:
            self.learn(endpoint.node_id, endpoint.host, endpoint.port)

    def voters_changed(self) -> None:
        """Takes over the addresses of a new set of voters in the log."""
        for voter in self._voters.voter_set.voters:
            self._learned.pop(voter.key.replica_id, None)
            address = self.of_voter(voter)
            if address is not None:
                self._former[voter.key.replica_id] = address

    def to_ask(self) -> list[tuple[int, Address]]:
        """Returns the nodes that may know the leader, in order; the id of a bootstrap server is not known: -1."""
        found = [(-1, address) for address in self._bootstrap]
        for voter in self._voters.voter_set.voters:
            address = self.of(voter.key.replica_id)
            if address is not None and address not in self._bootstrap:
                found.append((voter.key.replica_id, address))
        return found
