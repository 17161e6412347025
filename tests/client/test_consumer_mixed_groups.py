"""Groups in which Strandline's members sit beside librdkafka's and Java's, on both brokers."""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer as ConfluentConsumer

from strandline.base.ids import TopicPartition
from strandline.client.consumer.group.assignors import Assignment, MemberSubscription
from strandline.client.consumer.group.sticky import BUILT_IN, JAVA_NAMES
from tests.client.consuming import Pollers, fill, make_topic, member, new_group, pollers
from tests.client.reading import run
from tests.compat.server import Server
from tests.oracle.fetch import JAVA, KAFKA_JARS
from tests.oracle.java_worker import JavaWorker
from tests.oracle.require import require

ANSWER_SECONDS_MAX = 60.0
PARTITIONS = 4
STRATEGIES = ["range", "roundrobin", "cooperative-sticky"]


class LibrdkafkaMember:
    """A confluent-kafka consumer that is polled by a task, in a thread."""

    def __init__(self, bootstrap: str, group: str, topic: str, **settings: str) -> None:
        self._consumer = ConfluentConsumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "log_level": 0,
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        self._consumer.subscribe([topic])
        self._task = asyncio.get_running_loop().create_task(self._poll())
        self.seen: list[int] = []
        self.assigned: set[TopicPartition] = set()

    async def _poll(self) -> None:
        while True:
            for message in await asyncio.to_thread(self._consumer.consume, 100, 0.1):
                assert message.error() is None, message.error()
                self.seen.append(int(message.value() or b""))
            self.assigned = {
                TopicPartition(each.topic, each.partition) for each in self._consumer.assignment()
            }

    async def stop(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        await asyncio.sleep(0.15)  # the thread's last call may still be running
        await asyncio.to_thread(self._consumer.close)


class JavaMember:
    def __init__(
        self, worker: JavaWorker, name: str, bootstrap: str, group: str, topic: str, **settings: str
    ) -> None:
        self._worker = worker
        self._name = name
        given = {name.replace("_", "."): value for name, value in settings.items()}
        usual = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
        self._ask("start", topics=[topic], settings=usual | given)

    def _ask(self, operation: str, **more: Any) -> Any:
        question = {"operation": operation, "name": self._name, **more}
        response = self._worker.call(question, timeout_s=ANSWER_SECONDS_MAX)
        assert "error" not in response, response
        return response["result"]

    @property
    def seen(self) -> list[int]:
        return [int(value) for value in self._ask("state")["seen"]]

    @property
    def assigned(self) -> set[TopicPartition]:
        places = [text.rpartition("-") for text in self._ask("state")["assigned"]]
        return {TopicPartition(topic, int(number)) for topic, _, number in places}

    async def stop(self) -> None:
        await asyncio.to_thread(self._ask, "stop")


@pytest.fixture(scope="module")
def java_worker() -> Iterator[JavaWorker]:
    source = Path(__file__).parent / "java" / "Members.java"
    with JavaWorker(java=require(JAVA), jars=require(KAFKA_JARS), source=source) as worker:
        yield worker


def is_shared(group: Pollers, other: LibrdkafkaMember | JavaMember) -> bool:
    ours = [where for each in group.assignments().values() for where in each]
    theirs = other.assigned
    return bool(ours) and bool(theirs) and len(ours) + len(theirs) == PARTITIONS == len({*ours, *theirs})


async def share_with(
    bootstrap: str, topic: str, group: str, join: Any, settings: dict[str, Any], is_ours_first: bool
) -> None:
    """Both members read everything between them, in whichever order they join, and ours reads on alone at the end."""
    async with pollers() as members:
        other = None if is_ours_first else join()
        if other is not None:
            await members.until(lambda: len(other.assigned) == PARTITIONS, "the other has all")
        members.add(1, await member(bootstrap, group, [topic], **settings))
        if other is None:
            await members.until(lambda: members.is_shared(PARTITIONS), "ours has all")
            other = join()
        await members.until(lambda: is_shared(members, other), "both share")
        fill(bootstrap, topic, range(200), partitions=PARTITIONS)
        await members.until(lambda: len(other.seen) + len(members.all_values()) >= 200, "all is read")
        assert sorted([*other.seen, *members.all_values()]) == list(range(200))
        await other.stop()
        await members.until(lambda: members.is_shared(PARTITIONS), "ours has all at the end")
        fill(bootstrap, topic, range(200, 210), partitions=PARTITIONS)
        await members.until(lambda: set(range(200, 210)) <= set(members.all_values()), "ours reads on")


@pytest.mark.parametrize("is_ours_first", [True, False], ids=["ours-leads", "theirs-leads"])
@pytest.mark.parametrize("strategy", [*STRATEGIES, "new"])
def test_librdkafka_and_strandline_share_a_group(
    strandline_server: Server, topic: str, strategy: str, is_ours_first: bool
) -> None:
    bootstrap = strandline_server.bootstrap
    make_topic(bootstrap, topic, partitions=PARTITIONS)
    group = new_group()
    ours: dict[str, Any] = {"partition_assignment_strategy": [strategy]}
    theirs = {
        "partition_assignment_strategy": strategy,
        "session_timeout_ms": "2500",
        "heartbeat_interval_ms": "200",
    }
    if strategy == "new":
        ours, theirs = {"group_protocol": "consumer"}, {"group_protocol": "consumer"}

    async def main() -> None:
        def join() -> LibrdkafkaMember:
            return LibrdkafkaMember(bootstrap, group, topic, **theirs)

        await share_with(bootstrap, topic, group, join, ours, is_ours_first)

    run(main(), seconds_max=180)


@pytest.mark.oracle
@pytest.mark.xdist_group("apache-kafka")
@pytest.mark.parametrize("is_ours_first", [True, False], ids=["ours-leads", "theirs-leads"])
@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky", "new"])
def test_java_and_strandline_share_a_group(
    bootstrap: str, topic: str, strategy: str, is_ours_first: bool, java_worker: JavaWorker
) -> None:
    make_topic(bootstrap, topic, partitions=PARTITIONS)
    group = new_group()
    java_names = {name: java for java, name in JAVA_NAMES.items()}
    if strategy == "new":
        ours, theirs = {"group_protocol": "consumer"}, {"group_protocol": "consumer"}
    else:
        ours = {"partition_assignment_strategy": strategy}
        theirs = {
            "partition_assignment_strategy": java_names[strategy],
            "session_timeout_ms": "2500",
            "heartbeat_interval_ms": "200",
        }

    async def main() -> None:
        def join() -> JavaMember:
            return JavaMember(java_worker, new_group("java"), bootstrap, group, topic, **theirs)

        await share_with(bootstrap, topic, group, join, ours, is_ours_first)

    run(main(), seconds_max=180)


# Java's assignors as an oracle


def random_case(chance: random.Random, assignor: str) -> tuple[list[MemberSubscription], dict[str, int]]:
    """Returns a group after an earlier assignment, with members and topics that came and went."""
    topics = [f"t{number}" for number in range(chance.randint(1, 4))]
    counts = {topic: chance.randint(1, 9) for topic in topics}
    is_same_for_all = chance.random() < 0.5
    group = []
    for number in range(chance.randint(1, 7)):
        wanted = topics if is_same_for_all else sorted(chance.sample(topics, chance.randint(1, len(topics))))
        instance = f"i{chance.randint(0, 99)}-{number}" if chance.random() < 0.3 else None
        group.append(MemberSubscription(member_id=f"m{number}", topics=tuple(wanted), instance_id=instance))
    before = BUILT_IN[assignor].assign(group, counts)
    generation = chance.randint(1, 9)
    told = []
    for each in group:
        if chance.random() < 0.25 and len(group) > 1:
            continue
        owned = tuple(before[each.member_id]) if chance.random() < 0.9 else ()
        is_new = not owned
        told.append(
            MemberSubscription(
                member_id=each.member_id,
                topics=each.topics,
                instance_id=each.instance_id,
                owned=owned if BUILT_IN[assignor].is_cooperative else (),
                generation=-1 if is_new else generation,
                user_data=None if is_new else BUILT_IN[assignor].user_data(owned, generation),
            )
        )
    if chance.random() < 0.3:
        counts[topics[0]] += 2
    told = told or group[:1]
    wanted_by_any = {topic for each in told for topic in each.topics}
    return told, {topic: count for topic, count in counts.items() if topic in wanted_by_any}


def to_json(assignor: str, group: list[MemberSubscription], counts: dict[str, int]) -> dict[str, Any]:
    return {
        "assignor": assignor,
        "counts": counts,
        "members": [
            {
                "id": each.member_id,
                "topics": each.topics,
                "owned": each.owned,
                "generation": each.generation,
                "instance": each.instance_id,
                "user_data": None if each.user_data is None else base64.b64encode(each.user_data).decode(),
            }
            for each in group
        ],
    }


def previously(assignor: str, group: list[MemberSubscription]) -> dict[str, set[TopicPartition]]:
    """Returns the partitions that each member had, from its user data or its own fields."""
    if BUILT_IN[assignor].is_cooperative:
        return {each.member_id: set(each.owned) for each in group}
    return {each.member_id: set(BUILT_IN["sticky"]._claim(each)[1]) for each in group}  # type: ignore[union-attr]


def score(found: Assignment) -> int:
    """Java's measure of balance: the sum of differences between members, less is better."""
    sizes = [len(partitions) for partitions in found.values()]
    return sum(abs(a - b) for number, a in enumerate(sizes) for b in sizes[number + 1 :])


@pytest.mark.oracle
@pytest.mark.xdist_group("apache-kafka")
@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_assignments_are_javas_or_as_good(assignor: str, java_worker: JavaWorker) -> None:
    chance = random.Random(20)
    cases = [random_case(chance, assignor) for _ in range(300)]
    question = {"operation": "assign", "cases": [to_json(assignor, *case) for case in cases]}
    response = java_worker.call(question, timeout_s=ANSWER_SECONDS_MAX)
    assert "error" not in response, response
    for (group, counts), java in zip(cases, response["result"], strict=True):
        theirs = {name: [TopicPartition(*where) for where in partitions] for name, partitions in java.items()}
        ours = BUILT_IN[assignor].assign(group, counts)
        if assignor in ("range", "roundrobin"):
            assert {m: sorted(p) for m, p in ours.items()} == {m: sorted(p) for m, p in theirs.items()}, group
            continue
        had = previously(assignor, group)
        kept = sum(len(had[name] & set(partitions)) for name, partitions in ours.items())
        kept_by_java = sum(len(had[name] & set(partitions)) for name, partitions in theirs.items())
        if assignor == "sticky":
            assert score(ours) <= score(theirs), (group, counts, ours, theirs)
        if score(ours) == score(theirs):
            assert kept >= kept_by_java, (group, counts, ours, theirs)
