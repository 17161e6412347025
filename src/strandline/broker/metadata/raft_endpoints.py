"""Where the nodes of the metadata quorum are: by configuration, by the set of voters in the log, or by word of others.

Configured voters are where the configuration says. Where voters are in the log, the newest word counts: a leader tells
its own endpoints when its epoch begins, and whoever knows the leader tells them with each answer; a new set of voters
takes their place. Nobody knows any of that at first: `controller.quorum.bootstrap.servers` are asked then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from strandline.quorum.voters import Endpoint, Voter, VoterHistory


class Address(NamedTuple):
    host: str
    port: int


class NodeEndpoint(Protocol):
    """As every answer of the quorum has it."""

    node_id: int
    host: str
    port: int


class RaftEndpoints:
    def __init__(self, listener_name: str, bootstrap: tuple[Address, ...], own: Endpoint | None) -> None:
        self.listener_name = listener_name
        # This node's own, for others to reach it by; None on a broker.
        self.own = own
        self._bootstrap = bootstrap
        self._history: VoterHistory
        self._learned: dict[int, Address] = {}
        # Of nodes that were voters when this one last looked: a leader leads on for a while after its removal.
        self._former: dict[int, Address] = {}

    def follow(self, history: VoterHistory) -> None:
        self._history = history
        self.voters_changed()

    def of(self, node_id: int) -> Address | None:
        """None if nobody has said where that node is."""
        learned = self._learned.get(node_id)
        voter = self._history.last.by_id(node_id)
        if learned is not None and (voter is None or self._history.is_dynamic):
            return learned
        return self._former.get(node_id) if voter is None else self.of_voter(voter)

    def of_voter(self, voter: Voter) -> Address | None:
        """On the listener that this node uses, if the voter has it."""
        for endpoint in voter.endpoints:
            if endpoint.listener == self.listener_name:
                return Address(endpoint.host, endpoint.port)
        return Address(*voter.endpoints[0][1:]) if voter.endpoints else None

    def learn(self, node_id: int, host: str, port: int) -> None:
        if host and port and node_id >= 0:
            self._learned[node_id] = Address(host, port)

    def learn_from(self, endpoints: Iterable[NodeEndpoint]) -> None:
        """What an answer says of the leader."""
        for endpoint in endpoints:
            self.learn(endpoint.node_id, endpoint.host, endpoint.port)

    def voters_changed(self) -> None:
        """The log says better where its voters are."""
        for voter in self._history.last.voters:
            self._learned.pop(voter.key.replica_id, None)
            address = self.of_voter(voter)
            if address is not None:
                self._former[voter.key.replica_id] = address

    def to_ask(self) -> list[tuple[int, Address]]:
        """Whom to ask who leads, in order; a bootstrap server's id is not known: -1."""
        found = [(-1, address) for address in self._bootstrap]
        for voter in self._history.last.voters:
            address = self.of(voter.key.replica_id)
            if address is not None and address not in self._bootstrap:
                found.append((voter.key.replica_id, address))
        return found
