"""A classic group and a consumer group for the clauses of KIPs, on the groups' machine alone."""

from __future__ import annotations

from typing import Any

from strandline.base.errors import ErrorCode
from tests.group_requests import assignment, consumer_heartbeat, consumer_join, heartbeat, join, owned, sync
from tests.unit.groups.machine import Machine, Token, topic_id

ORDERS = topic_id("orders")


class Classic:
    """A classic group; members are called by short names, which are their client ids."""

    def __init__(self, machine: Machine | None = None, group: str = "g") -> None:
        self.machine = machine or Machine()
        self.group = group
        self.ids: dict[str, str] = {}
        self.generation = -1

    def send_join(self, name: str, **fields: Any) -> Token:
        """A member joins, with the id it has or gets; the token has its response when the group is complete."""
        request = join(self.group, self.ids.get(name, ""), **fields)
        token = self.machine.send(request, client=name)
        if token.response is not None and token.response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.ids[name] = token.response.member_id
            token = self.machine.send(join(self.group, self.ids[name], **fields), client=name)
        self.machine.pass_time(0)  # the initial delay of a new group, which is none
        return token

    def joined(self, name: str, token: Token) -> Any:
        assert token.response is not None
        assert token.response.error_code == ErrorCode.NONE, token.response
        self.ids[name] = token.response.member_id
        self.generation = token.response.generation_id
        return token.response

    def form(self, *names: str, **fields: Any) -> None:
        """All join and sync; the first leads, and each gets the partition of its number."""
        tokens: dict[str, Token] = {}
        for name in names:
            earlier = list(tokens)
            tokens[name] = self.send_join(name, **fields)
            for other in earlier:
                tokens[other] = self.send_join(other, **fields)
        for name, token in tokens.items():
            self.joined(name, token)
        shares = {self.ids[name]: assignment({"orders": (n,)}) for n, name in enumerate(names)}
        for name in names:
            self.machine.send(sync(self.group, self.ids[name], self.generation, shares))

    def heartbeat(self, name: str, *, instance: str | None = None) -> int:
        request = heartbeat(self.group, self.ids[name], self.generation, instance=instance)
        return int(self.machine.ask(request).error_code)

    def sync(self, name: str, shares: dict[str, bytes] | None = None, **fields: Any) -> Token:
        given = {self.ids[who]: share for who, share in (shares or {}).items()}
        return self.machine.send(sync(self.group, self.ids[name], self.generation, given, **fields))

    @property
    def state(self) -> str:
        return self.machine.shard.groups[self.group].state

    @property
    def members(self) -> set[str]:
        return set(self.machine.shard.groups[self.group].members)


class Consumers:
    """A consumer group whose members do what they are told, one heartbeat at a time."""

    def __init__(self, machine: Machine | None = None, group: str = "c") -> None:
        self.machine = machine or Machine()
        self.group = group
        self.epochs: dict[str, int] = {}
        self.held: dict[str, set[int]] = {}

    def join(self, name: str, *topics: str, **fields: Any) -> Any:
        return self._learn(name, self.machine.ask(consumer_join(self.group, name, *topics, **fields)))

    def beat(self, name: str, *, report: bool = False, **fields: Any) -> Any:
        if report:
            fields["topic_partitions"] = owned({ORDERS: sorted(self.held[name])} if self.held[name] else {})
        return self._learn(
            name, self.machine.ask(consumer_heartbeat(self.group, name, self.epochs[name], **fields))
        )

    def leave(self, name: str, epoch: int = -1, **fields: Any) -> Any:
        return self.machine.ask(consumer_heartbeat(self.group, name, epoch, **fields))

    def _learn(self, name: str, response: Any) -> Any:
        if response.error_code == ErrorCode.NONE:
            self.epochs[name] = response.member_epoch
            self.held.setdefault(name, set())
            if response.assignment is not None:
                found = {t.topic_id: t.partitions for t in response.assignment.topic_partitions}
                self.held[name] = set(found.get(ORDERS, ()))
        return response

    def settle(self, rounds: int = 6) -> None:
        for _ in range(rounds):
            for name in list(self.epochs):
                self.beat(name, report=True)

    @property
    def record(self) -> Any:
        return self.machine.shard.groups[self.group]
