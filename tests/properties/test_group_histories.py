"""A groups' machine is what its records say: after any history a new coordinator knows what the old one knew.

Histories mix classic and consumer members in the same groups, static ones too, commits, deletions, expiry, topics that
come, grow and go, and failovers.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from strandline.base.errors import ErrorCode, KafkaError
from strandline.groups.classic.group import EMPTY, STABLE, ClassicGroup
from strandline.groups.result import CoordinatorResult
from tests.group_requests import (
    assignment,
    commit,
    consumer_heartbeat,
    consumer_join,
    heartbeat,
    join,
    leave,
    owned,
    subscription,
    sync,
)
from tests.unit.groups.machine import Machine, Token, durable

from .effort import effort

GROUPS = st.sampled_from(("g", "h"))
CLIENTS = st.integers(0, 4)
TOPICS = st.sampled_from((("orders",), ("other",), ("orders", "other"), ()))


class ClassicClient:
    """The state that a classic client remembers between its requests."""

    def __init__(self) -> None:
        self.member_id = ""
        self.generation = -1
        self.joining: Token | None = None
        self.members: list[str] = []
        self.leads = False


class Histories(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.machine = Machine()
        self.clients: dict[tuple[str, int], ClassicClient] = {}
        self.consumers: dict[tuple[str, int], tuple[int, dict[bytes, tuple[int, ...]]]] = {}

    def client(self, group: str, number: int) -> ClassicClient:
        found = self.clients.setdefault((group, number), ClassicClient())
        response = found.joining.response if found.joining is not None else None
        if response is not None:
            found.joining = None
            if response.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                found.member_id = response.member_id
                found.generation = response.generation_id
                found.leads = response.leader == response.member_id and not response.skip_assignment
                found.members = [m.member_id for m in response.members]
            else:
                found.member_id = ""
        return found

    # The classic protocol; clients 0 and 1 are static members

    @rule(
        group=GROUPS, number=CLIENTS, topics=TOPICS, version=st.sampled_from((3, 8, 9)), forgets=st.booleans()
    )
    def join(self, group: str, number: int, topics: tuple[str, ...], version: int, forgets: bool) -> None:
        client = self.client(group, number)
        request = join(
            group,
            "" if forgets else client.member_id,
            instance=f"i{number}" if number < 2 and version >= 5 else None,
            protocols={"range": subscription(*topics), "roundrobin": subscription(*topics)},
            session_ms=20_000 + 1000 * number,
        )
        client.joining = self.machine.send(request, version, client=f"client{number}")

    @rule(group=GROUPS, number=CLIENTS, share=st.integers(0, 3))
    def sync(self, group: str, number: int, share: int) -> None:
        client = self.client(group, number)
        shares: dict[str, bytes] = {}
        if client.leads:
            shares = {m: assignment({"orders": (share + n,)}) for n, m in enumerate(client.members)}
        instance = f"i{number}" if number < 2 else None
        self.machine.send(sync(group, client.member_id, client.generation, shares, instance=instance))

    @rule(group=GROUPS, number=CLIENTS)
    def heartbeat(self, group: str, number: int) -> None:
        client = self.client(group, number)
        self.machine.ask(heartbeat(group, client.member_id, client.generation))

    @rule(group=GROUPS, number=CLIENTS, by_instance=st.booleans())
    def leave(self, group: str, number: int, by_instance: bool) -> None:
        client = self.client(group, number)
        who = ("", f"i{number}") if by_instance else client.member_id
        self.machine.ask(leave(group, who))

    @rule(group=GROUPS, share=st.integers(0, 3))
    def settle(self, group: str, share: int) -> None:
        """Everyone who is in a classic group does what it is told, so that the group gets a new generation."""
        found = self.machine.shard.groups.get(group)
        if not isinstance(found, ClassicGroup):
            return
        mine = [n for (name, n) in list(self.clients) if name == group]
        self.machine.pass_time(0)
        for number in mine:
            if self.client(group, number).member_id in (*found.members, *found.pending_members):
                self.join(group, number, ("orders",), 9, forgets=False)
        self.machine.pass_time(10_000)
        members = [n for n in mine if self.client(group, n).member_id in found.members]
        for number in sorted(members, key=lambda n: not self.client(group, n).leads):
            self.sync(group, number, share)

    # The consumer protocol

    @rule(
        group=GROUPS, number=CLIENTS, topics=TOPICS, regex=st.sampled_from((None, "o.*", "(")), data=st.data()
    )
    def consumer_join(
        self, group: str, number: int, topics: tuple[str, ...], regex: str | None, data: st.DataObject
    ) -> None:
        assignor = data.draw(st.sampled_from((None, "uniform", "range")))
        fields: dict[str, Any] = {"subscribed_topic_names": topics, "server_assignor": assignor}
        if regex is not None:
            fields["subscribed_topic_regex"] = regex
        request = consumer_join(
            group,
            data.draw(st.sampled_from((f"c{number}", f"c{number}-again"))),
            instance=f"i{number}" if number < 2 else None,
            **fields,
        )
        self._learn(group, number, request.member_id, self.machine.ask(request))

    @rule(group=GROUPS, numbers=st.sets(st.integers(2, 4), min_size=2), topics=TOPICS)
    def consumers_join_together(self, group: str, numbers: set[int], topics: tuple[str, ...]) -> None:
        requests = [consumer_join(group, f"c{n}", subscribed_topic_names=topics) for n in sorted(numbers)]
        responses = self.machine.join_together(requests)
        for number, request, response in zip(sorted(numbers), requests, responses or (), strict=False):
            self._learn(group, number, request.member_id, response)

    def _learn(self, group: str, number: int, member_id: str, response: Any) -> None:
        if response.error_code:
            return
        _, held = self.consumers.get((group, number), (0, {}))
        if response.assignment is not None:
            held = {t.topic_id: t.partitions for t in response.assignment.topic_partitions}
        self.consumers[group, number] = (response.member_epoch, held)

    @rule(
        group=GROUPS, number=CLIENTS, says=st.sampled_from(("nothing", "what it holds")), again=st.booleans()
    )
    def consumer_heartbeat(self, group: str, number: int, says: str, again: bool) -> None:
        epoch, held = self.consumers.get((group, number), (1, {}))
        member = f"c{number}-again" if again else f"c{number}"
        fields: dict[str, Any] = {"instance_id": f"i{number}" if number < 2 else None}
        if says == "what it holds":
            fields["topic_partitions"] = owned(held)
        self._learn(
            group, number, member, self.machine.ask(consumer_heartbeat(group, member, epoch, **fields))
        )

    @rule(group=GROUPS, number=CLIENTS, epoch=st.sampled_from((-1, -2)))
    def consumer_leave(self, group: str, number: int, epoch: int) -> None:
        instance = f"i{number}" if number < 2 else None
        self.machine.ask(consumer_heartbeat(group, f"c{number}", epoch, instance_id=instance))

    # Offsets, time, topics, failovers

    @rule(
        group=GROUPS,
        number=st.integers(-1, 4),
        offset=st.integers(0, 99),
        kept_ms=st.sampled_from((-1, 5000)),
    )
    def commit(self, group: str, number: int, offset: int, kept_ms: int) -> None:
        who: dict[str, Any] = {}
        if number >= 0:
            client = self.client(group, number)
            who = {"member": client.member_id, "generation": client.generation}
            if (group, number) in self.consumers and offset % 2:
                who = {"member": f"c{number}", "generation": self.consumers[group, number][0]}
        with suppress(KafkaError):
            self.machine.commit(commit(group, {offset % 3: offset}, retention_ms=kept_ms, **who))

    @rule(group=GROUPS, topic=st.sampled_from(("orders", "other")))
    def delete_offsets(self, group: str, topic: str) -> None:
        with suppress(KafkaError):
            result, _ = self.machine.shard.offset_requests.delete(group, [(topic, 0), (topic, 1)])
            self.machine.run(result)

    @rule(group=GROUPS)
    def delete_group(self, group: str) -> None:
        result, _ = self.machine.shard.delete_group(group)
        self.machine.run(result)

    @rule(ms=st.sampled_from((0, 1000, 9000, 25_000, 50_000, 4_000_000)))
    def time_passes(self, ms: int) -> None:
        self.machine.pass_time(ms)
        self.machine.run(self.machine.shard.expire_offsets(self.machine.now()))

    @rule(name=st.sampled_from(("orders", "other", "opened")), count=st.integers(0, 5))
    def topic_changes(self, name: str, count: int) -> None:
        if count or name in self.machine.topics.counts:
            self.machine.topics.change(name, count)
            if not count:
                for group_id in self.machine.shard.offsets.groups():
                    entries = self.machine.shard.offsets.tombstones(group_id, [name])
                    self.machine.run(CoordinatorResult(entries=entries))

    @rule()
    def fail_over(self) -> None:
        self.machine.fail_over()
        for client in self.clients.values():
            client.joining = None

    # What holds after each

    @invariant()
    def records_tell_everything(self) -> None:
        known, told = durable(self.machine.shard), durable(self.machine.rebuilt())
        # A group that rebalances is still told of as it was before.
        rebalancing = {
            group_id
            for group_id, group in self.machine.shard.groups.items()
            if isinstance(group, ClassicGroup) and group.state not in (STABLE, EMPTY)
        }
        for group_id in rebalancing:
            told["groups"].pop(group_id, None)
        assert told == known

    @invariant()
    def nothing_belongs_to_two(self) -> None:
        self.machine.shard.check_invariants()
        self.machine.rebuilt().check_invariants()


Histories.TestCase.settings = effort(80)
TestHistories = Histories.TestCase
