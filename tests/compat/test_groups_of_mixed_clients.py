"""Groups whose members are of different kinds: two client libraries, two ways to rebalance, two protocols; and static
members, which keep their place over a restart.

The stories run beside each other; a test for each says how its own ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.compat.clients.interface import eventually
from tests.compat.members.host import QUICK_SESSIONS, Group, Member, java_host, python_host
from tests.compat.members.stories import FIRST, MORE, PARTITIONS, Records, committed
from tests.compat.server import PrivateServer
from tests.oracle.java_worker import LineWorker

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]

JAVA = "org.apache.kafka.clients.consumer."
RANGE = {"partition.assignment.strategy": f"{JAVA}RangeAssignor"}
BOTH = {"partition.assignment.strategy": f"{JAVA}CooperativeStickyAssignor,{JAVA}RangeAssignor"}
COOPERATIVE = {"partition.assignment.strategy": f"{JAVA}CooperativeStickyAssignor"}
LIBRDKAFKA_RANGE = {"partition.assignment.strategy": "range"}
LIBRDKAFKA_COOPERATIVE = {"partition.assignment.strategy": "cooperative-sticky"}
CONSUMER = {"group.protocol": "consumer"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    bootstrap: str
    java: LineWorker
    python: LineWorker
    directory: Path

    def group(self) -> tuple[Group, Records]:
        records = Records(self.bootstrap)
        return Group(f"g-{records.topic}", records.topic, self.bootstrap, self.directory), records

    def described(self, group: Group) -> tuple[str, str]:
        """Type and state."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        found = admin.describe_consumer_groups([group.group_id])[group.group_id].result(20)
        return found.type.name, found.state.name


def end(group: Group, records: Records, *, exactly_once: bool = True) -> None:
    records.write(MORE)
    group.wait_until_processed(records.ends)
    if exactly_once:
        assert group.processed_again() == {}, group.errors()
        assert group.errors() == []
    for member in group.alive:
        member.leave()
    assert committed(group.bootstrap, group.group_id) == records.ends


def java_and_librdkafka(scene: Scene) -> None:
    group, records = scene.group()
    records.write(FIRST)
    first = group.join(scene.java, "java", RANGE)
    group.wait_until_held([first], PARTITIONS)
    second = group.join(scene.python, "confluent", LIBRDKAFKA_RANGE)
    third = group.join(scene.python, "kafka-python", {"assignor": "range"})
    group.wait_until_held([first, second, third], PARTITIONS)
    records.write(MORE)
    first.leave()  # it led the group
    group.wait_until_held([second, third], PARTITIONS)
    end(group, records)


def java_and_librdkafka_cooperative(scene: Scene) -> None:
    group, records = scene.group()
    records.write(FIRST)
    first = group.join(scene.python, "confluent", LIBRDKAFKA_COOPERATIVE)
    group.wait_until_held([first], PARTITIONS)
    second = group.join(scene.java, "java", COOPERATIVE)
    group.wait_until_held([first, second], PARTITIONS)
    records.write(MORE)
    first.leave()
    group.wait_until_held([second], PARTITIONS)
    end(group, records)


def java_and_librdkafka_consumer_protocol(scene: Scene) -> None:
    group, records = scene.group()
    records.write(FIRST)
    first = group.join(scene.java, "java", CONSUMER)
    group.wait_until_held([first], PARTITIONS)
    second = group.join(scene.python, "confluent", CONSUMER)
    group.wait_until_held([first, second], PARTITIONS)
    records.write(MORE)
    first.leave()
    group.wait_until_held([second], PARTITIONS)
    end(group, records)


def from_eager_to_cooperative(scene: Scene) -> None:
    """The way that KIP-429 tells: members that can do both beside eager ones, then cooperative ones only."""
    group, records = scene.group()
    records.write(FIRST)
    eager = group.join(scene.java, "java", RANGE)
    group.wait_until_held([eager], PARTITIONS)
    both = group.join(scene.java, "java", BOTH)
    group.wait_until_held([eager, both], PARTITIONS)
    eager.leave()
    group.wait_until_held([both], PARTITIONS)
    cooperative = group.join(scene.java, "java", COOPERATIVE)
    group.wait_until_held([both, cooperative], PARTITIONS)
    end(group, records)


def online_upgrade_and_downgrade(scene: Scene) -> None:
    """KIP-848: members move to the consumer protocol one after another, and back, while records are processed."""
    group, records = scene.group()
    records.write(FIRST)
    old = [group.join(scene.java, "java", RANGE) for _ in range(2)]
    group.wait_until_held(old, PARTITIONS)
    assert scene.described(group) == ("CLASSIC", "STABLE")
    records.write(MORE)
    new = group.join(scene.java, "java", CONSUMER)
    group.wait_until_held([*old, new], PARTITIONS)
    assert scene.described(group)[0] == "CONSUMER"
    records.write(MORE)
    for member in old:
        member.leave()
    group.wait_until_held([new], PARTITIONS)
    assert scene.described(group) == ("CONSUMER", "STABLE")
    records.write(MORE)
    back = group.join(scene.java, "java", RANGE)
    group.wait_until_held([back, new], PARTITIONS)
    new.leave()
    group.wait_until_held([back], PARTITIONS)
    eventually(lambda: scene.described(group), lambda found: found == ("CLASSIC", "STABLE"))
    end(group, records, exactly_once=False)
    assert group.errors() == []


def librdkafka_beside_a_consumer_upgrade(scene: Scene) -> None:
    group, records = scene.group()
    records.write(FIRST)
    old = group.join(scene.python, "confluent", LIBRDKAFKA_COOPERATIVE)
    group.wait_until_held([old], PARTITIONS)
    new = group.join(scene.python, "confluent", CONSUMER)
    group.wait_until_held([old, new], PARTITIONS)
    records.write(MORE)
    old.leave()
    group.wait_until_held([new], PARTITIONS)
    end(group, records)


def static_restart(client: str, settings: dict[str, str]) -> Callable[[Scene], None]:
    """Restarts a static member within its session timeout, which causes no rebalance. An older twin is fenced."""

    def story(scene: Scene) -> None:
        host = scene.java if client == "java" else scene.python
        if "group.protocol" not in settings:
            settings["session.timeout.ms"] = "10000"  # a restart on a busy machine
        group, records = scene.group()
        records.write(FIRST)
        other = group.join(host, client, {**settings, "group.instance.id": "other"})
        restarted = group.join(host, client, {**settings, "group.instance.id": "restarted"})
        group.wait_until_held([other, restarted], PARTITIONS)
        group.wait_until_processed(records.ends)
        before, had = len(other.journal.assignments), restarted.journal.held or None
        restarted.leave()  # a static member does not leave its group when it closes
        assert had is not None
        again = group.join(host, client, {**settings, "group.instance.id": "restarted"})
        eventually(lambda: (again.journal.held, had), lambda found: found[0] == found[1])
        assert len(other.journal.assignments) == before, "the other was not disturbed"
        end(group, records)

    return story


def static_twins(scene: Scene) -> None:
    group, records = scene.group()
    records.write(FIRST)
    older = group.join(scene.java, "java", {**RANGE, "group.instance.id": "twin"})
    group.wait_until_held([older], PARTITIONS)
    younger = group.join(scene.java, "java", {**RANGE, "group.instance.id": "twin"})
    eventually(lambda: older.journal.errors, lambda errors: any("FencedInstanceId" in e for e in errors))
    older.is_alive = False
    group.wait_until_held([younger], PARTITIONS)
    end(group, records, exactly_once=False)


def expressions(scene: Scene) -> None:
    """Regular expressions: matched by the client in the classic protocol, by the broker (RE2) in the other."""
    for settings, prefix in ((RANGE, "java:"), (CONSUMER, "re2:")):
        group, records = scene.group()
        records.write(FIRST)
        member: Member = group.join(scene.java, "java", settings, topic=f"{prefix}{records.topic[:-1]}.*")
        group.wait_until_held([member], PARTITIONS)
        end(group, records)


STORIES: dict[str, Callable[[Scene], None]] = {
    "Java, librdkafka and kafka-python": java_and_librdkafka,
    "Java and librdkafka, cooperative": java_and_librdkafka_cooperative,
    "Java and librdkafka, consumer protocol": java_and_librdkafka_consumer_protocol,
    "eager, both, cooperative": from_eager_to_cooperative,
    "classic to consumer and back": online_upgrade_and_downgrade,
    "librdkafka from classic to consumer": librdkafka_beside_a_consumer_upgrade,
    "static restart, Java": static_restart("java", dict(RANGE)),
    "static restart, Java, cooperative": static_restart("java", dict(COOPERATIVE)),
    "static restart, Java, consumer protocol": static_restart("java", CONSUMER),
    "static restart, librdkafka": static_restart("confluent", dict(LIBRDKAFKA_RANGE)),
    "static restart, librdkafka, consumer protocol": static_restart("confluent", CONSUMER),
    "static twins": static_twins,
    "regular expressions": expressions,
}


@pytest.fixture(scope="module")
def endings(
    private_server: PrivateServer, java: Path, kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, BaseException | None]]:
    found: dict[str, BaseException | None] = {}
    with (
        private_server({**QUICK_SESSIONS, "group.consumer.assignment.interval.ms": "0"}) as server,
        java_host(java, kafka_jars) as java_members,
        python_host() as python_members,
    ):
        scene = Scene(
            bootstrap=server.bootstrap,
            java=java_members,
            python=python_members,
            directory=tmp_path_factory.mktemp("journals"),
        )

        def run(name: str, story: Callable[[Scene], None]) -> None:
            try:
                story(scene)
                found[name] = None
            except BaseException as error:
                found[name] = error

        threads = [threading.Thread(target=run, args=item, daemon=True) for item in STORIES.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(90)
        yield found


@pytest.mark.parametrize("story", STORIES)
def test_members_of_different_kinds_share_a_group(
    endings: dict[str, BaseException | None], story: str
) -> None:
    failure = endings[story]
    if failure is not None:
        raise failure
