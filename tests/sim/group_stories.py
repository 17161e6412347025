"""Random events of a group and its coordinator: see `group_storm`; `group_judge` judges.

In the end all is healed, and a member dies. Then the living members must come to share all partitions, silent or stuck
ones must be out, every request must have a response, and a coordinator that is made from the log must know the same.
"""

from __future__ import annotations

import asyncio
from typing import Any

from strandline.sim.engine.loop import simulated_loop
from strandline.sim.engine.trace import Trace
from strandline.sim.history import Violation
from strandline.sim.random import generator
from strandline.wire.api.k42_delete_groups import DeleteGroupsRequest
from strandline.wire.records.offsets_topic import GroupMetadataValue
from tests import group_requests as ask
from tests.sim.group_calls import partitions_in
from tests.sim.group_members import (
    PROMPT,
    SLOW,
    STUCK,
    ClassicProcess,
    ConsumerProcess,
    CooperativeProcess,
    Process,
)
from tests.sim.group_records import held_in
from tests.sim.group_storm import GROUP, TOPICS, GroupStorm, start
from tests.unit.groups.machine import durable

_ACTS = 40
_LIVE_S = 90.0
_STEP_S = 1.0
_CALL_S = 2.0
_PROCESSES_MAX = 6
_OFFERS = (("range",), ("range", "sticky"), ("sticky", "range"), ("sticky", "range", "other"), ("other",))
_DELETIONS = ("delete-group", "delete-offset")
_TO_THE_COORDINATOR = ("stall", "fail-over", "stall-and-fail-over", "flow") * 2 + ("shrink",)
_TO_MEMBERS = ("kill", "restart", "leave", "pause") * 2 + ("twin", "wrong-epoch")
_KINDS = (*("start",) * 5, *_TO_MEMBERS, *_TO_THE_COORDINATOR, "grow")
# Where groups become empty now and then, and nobody comes for a while.
_WITH_QUIET = (*_KINDS, *_DELETIONS, *("empty",) * 5)
_IN_QUIET = (*_TO_THE_COORDINATOR, *_DELETIONS * 4)


class Weather:
    def __init__(self, storm: GroupStorm) -> None:
        self._storm = storm
        self._chance = storm.chance
        both = ("classic", "consumer")
        self._protocols = self._chance.choice((("classic",), ("consumer",), both, both))
        storm.is_by_id = self._protocols == ("consumer",)
        self._instances = [f"instance-{number}" for number in range(3)]
        self._habits = self._chance.choice(
            ((PROMPT,), (PROMPT, SLOW), (PROMPT, PROMPT, STUCK), (PROMPT, SLOW, STUCK))
        )
        self._classic = self._chance.choice((ClassicProcess, CooperativeProcess))
        self._kinds = self._chance.choice((_KINDS, _KINDS, _WITH_QUIET))
        self._offers = self._chance.choice((_OFFERS[:1], _OFFERS[:4], _OFFERS[1:]))
        self.processes: list[Process] = []
        self._quiet_until = 0.0  # nobody comes before

    @property
    def has_one_protocol(self) -> bool:
        """Members of either know topics by id or by name, and the judge what they have."""
        return len(self._protocols) == 1

    @property
    def living(self) -> list[Process]:
        return [each for each in self.processes if each.is_alive]

    def start(self, instance_id: str | None = None) -> None:
        if len(self.living) >= _PROCESSES_MAX:
            return
        habit = self._chance.choice(self._habits)
        process: Process
        if self._chance.choice(self._protocols) == "classic":
            process = self._classic(self._storm, instance_id, habit, self._chance.choice(self._offers))
        else:
            process = ConsumerProcess(self._storm, instance_id, habit)
        self.processes.append(process)
        start(process.live())

    def start_any(self) -> None:
        """Starts a member with an instance id that nobody has, or without one."""
        used = [each.instance_id for each in self.living]
        free = [each for each in self._instances if each not in used]
        self.start(self._chance.choice(free) if free and self._chance.random() < 0.5 else None)

    def act(self) -> None:
        is_quiet = self._storm.now < self._quiet_until
        kind = self._chance.choice(_IN_QUIET if is_quiet else self._kinds)
        if kind in _IN_QUIET:
            self._disturb_coordinator(kind)
        elif kind == "start" or not self.living:
            self.start_any()
        elif kind == "empty":
            self._empty()
        elif kind == "grow":
            topic = self._chance.choice(sorted(TOPICS))
            if topic in self._storm.topics.counts:
                self._storm.topics.change(topic, self._storm.topics.counts[topic] + 1)
        else:
            self._disturb(self._chance.choice(self.living), kind)

    def _disturb(self, process: Process, kind: str) -> None:
        match kind:
            case "kill":
                process.die()
            case "restart" | "twin":
                if kind == "restart":
                    process.die()
                if process.instance_id is not None:
                    self.start(process.instance_id)
            case "leave":
                start(process.leave())
            case "pause":
                process.paused_until = self._storm.now + self._chance.choice((1.0, 4.0, 8.0))
            case "wrong-epoch":
                if isinstance(process, ConsumerProcess):
                    start(process.say_a_wrong_epoch())

    def _disturb_coordinator(self, kind: str) -> None:
        chance, storm = self._chance, self._storm
        match kind:
            case "stall":
                storm.log.is_stalled = True
            case "shrink":
                storm.log.set_in_sync(False)
            case "fail-over":
                storm.fail_over()
            case "stall-and-fail-over":
                storm.log.is_stalled = True
                asyncio.get_running_loop().call_later(chance.uniform(0.0, 2.0), storm.fail_over)
            case "flow":
                self._flow()
            case "delete-group":
                start(storm.ask(DeleteGroupsRequest(groups_names=(GROUP,)), 2, _CALL_S))
            case "delete-offset":
                topic = chance.choice(sorted(TOPICS))
                request = ask.delete_offsets(GROUP, [chance.randrange(TOPICS[topic])], topic)
                start(storm.ask(request, 0, _CALL_S))

    def _empty(self) -> None:
        """Has all members leave. Before others come the group may be deleted, or its offsets may expire."""
        self._quiet_until = self._storm.now + self._chance.uniform(0.0, 12.0)
        for process in self.living:
            start(process.leave())

    def _flow(self) -> None:
        self._storm.log.is_stalled = False
        self._storm.log.set_in_sync(True)

    async def calm(self) -> None:
        self._storm.is_calm = True
        self._flow()
        await asyncio.sleep(3.0)
        self._flow()  # after a failover that was still to come
        if not any(each.habit != STUCK for each in self.living):
            self._habits = (PROMPT,)
            self.start_any()
        names = [each.instance_id for each in self.living]
        for number, process in enumerate(self.living):
            process.paused_until = 0.0
            if process.instance_id is not None and process.instance_id in names[number + 1 :]:
                process.die()
        await asyncio.sleep(self._chance.uniform(0.0, 5.0))
        others = [each for each in self.living if each.habit != STUCK][1:]
        if others and self._chance.random() < 0.7:
            self._chance.choice(others).die()
        await self._until_settled()
        self._check_end()

    async def _until_settled(self) -> None:
        deadline = self._storm.now + _LIVE_S
        why = ""
        while self._storm.now < deadline:
            await asyncio.sleep(_STEP_S)
            if all(each.habit == STUCK for each in self.living):
                self._habits = (PROMPT,)
                self.start_any()  # the last one shared no protocol with what was left of the group
            why = self._unsettled()
            if not why:
                return
        raise Violation("not-live", why)

    def _unsettled(self) -> str:
        """Returns the reason why the group is not whole yet, or None."""
        judge = self._storm.judge
        judge.read()
        living = sorted(each.member_id for each in self.living)
        if GROUP in judge.committed.epochs:
            epoch = judge.committed.epochs[GROUP]
            members = {m: v for (_, m), v in judge.committed.current.items()}
            for member_id, current in members.items():
                if current.member_epoch != epoch:
                    return f"{member_id} is at epoch {current.member_epoch} of {epoch}"
            shares = [held_in(current.assigned_partitions) for current in members.values()]
        else:
            record = judge.committed.classic.get(GROUP)
            if record is None:
                return "there is no group"
            members = members_of(record)
            if late := self._unsynced(record):
                return f"{late} has not asked for what it is assigned"
            shares = [partitions_in(m.assignment) for m in record.members]
        if sorted(members) != living:
            return f"the group has {sorted(members)}, alive are {living}"
        if sorted(each for share in shares for each in share) != sorted(self._storm.partitions()):
            return f"partitions are shared as {shares}"
        return "" if len({each.generation for each in self.living}) == 1 else "members differ in their epoch"

    def _unsynced(self, record: GroupMetadataValue) -> str | None:
        """Returns a member that is in the group and does not know its partitions: it has to ask in time, or be removed.
        Nobody waits for a member that comes back to a generation with an assignment: a static one, or any after a
        failover."""
        shares = {m.member_id: partitions_in(m.assignment) for m in record.members}
        for each in self.living:
            is_waited_for = (
                each.instance_id is None and record.generation != self._storm.judge.found_generation
            )
            if is_waited_for and each.held != shares.get(each.member_id):
                return each.member_id
        return None

    def _check_end(self) -> None:
        now = self._storm.now
        for call in self._storm.judge.calls:
            is_old = 0.0 <= call.arrived_at < now - 30.0
            if is_old and not call.is_given:
                raise Violation("no-response", f"{type(call.request).__name__} of {call.member_id}")
        assert self._storm.runtime is not None
        live, rebuilt = durable(self._storm.runtime.shard), durable(self._storm.rebuilt())
        # A classic group that rebalances is found as it was before: that is no difference.
        found = {group_id: rebuilt["groups"].get(group_id) for group_id in live["groups"]}
        if live["offsets"] != rebuilt["offsets"] or live["groups"] != found:
            raise Violation("rebuilt-differs", "a coordinator made from the log does not know the same")


def members_of(record: GroupMetadataValue) -> dict[str, Any]:
    return {m.member_id: m for m in record.members}


async def _story(seed: int) -> GroupStorm:
    storm = GroupStorm(seed)
    storm.start()
    weather = Weather(storm)
    start(storm.replicate())
    start(storm.expire())
    topics = generator(seed, "topics of a group")
    if weather.has_one_protocol and topics.random() < 0.5:
        start(storm.remake_topics(topics))
    for _ in range(storm.chance.randint(1, 3)):
        weather.start_any()
    await asyncio.sleep(3.0)
    for _ in range(_ACTS):
        weather.act()
        await asyncio.sleep(storm.chance.choice((0.0, 0.1, 1.0, 3.0)) * storm.chance.random())
    await weather.calm()
    return storm


def run(seed: int) -> GroupStorm:
    """Runs one storm; raises Violation, or an assertion of the machine."""
    loop = simulated_loop(Trace())
    try:
        return loop.run_until_complete(_story(seed))
    finally:
        loop.close()
