"""Scenarios of a group while its topic is written and read, the same for every kind of client.

Scenarios of several groups run at the same time, because they mostly wait.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compat.members.host import Group
from tests.oracle.java_worker import LineWorker
from tests.oracle.readiness import wait_until_writable

PARTITIONS = 6
FIRST, MORE = 60, 20
STEP_SECONDS_MAX = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A client library and what its members ask for."""

    client: str
    settings: Mapping[str, Any]


class Records:
    """Writes numbered records to every partition of a topic of its own."""

    def __init__(self, bootstrap: str, partitions: int = PARTITIONS) -> None:
        self.topic = f"groups-{uuid.uuid4().hex[:10]}"
        self.ends = dict.fromkeys(range(partitions), 0)
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(self.topic, partitions, 1)])[self.topic].result(20)
        wait_until_writable(bootstrap, self.topic, partitions=partitions)
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "log_level": 0})

    def write(self, count: int) -> None:
        for partition in self.ends:
            for _ in range(count):
                self._producer.produce(self.topic, b"x" * 20, partition=partition)
            self.ends[partition] += count
        assert self._producer.flush(60) == 0


def begin_at_first_record(bootstrap: str, group_id: str, records: Records) -> None:
    """Commits 0 everywhere. librdkafka 2.16 has a timer left when a rebalance comes while it asks for the earliest
    offset and the answer is slow; the partition is read by then, and begins again when the timer fires."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = [TopicPartition(records.topic, partition, 0) for partition in records.ends]
    admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group_id, wanted)])[group_id].result(60)


def committed(bootstrap: str, group_id: str) -> dict[int, int]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group_id)])
    return {p.partition: p.offset for p in found[group_id].result(20).topic_partitions}


class Story:
    """A group of one kind: members join, leave and at last one crashes."""

    def __init__(self, kind: Kind, bootstrap: str, directory: Path) -> None:
        self.kind = kind
        self.bootstrap = bootstrap
        self.records = Records(bootstrap)
        self.group = Group(f"g-{self.records.topic}", self.records.topic, bootstrap, directory)
        self.failure: BaseException | None = None
        begin_at_first_record(bootstrap, self.group.group_id, self.records)

    def without_a_crash(self, host: LineWorker) -> None:
        """Members come and go; each record is processed once, or again because a commit of it was refused."""
        group, records = self.group, self.records
        records.write(FIRST)
        first = group.join(host, self.kind.client, dict(self.kind.settings))
        group.wait_until_held([first], PARTITIONS)
        second = group.join(host, self.kind.client, dict(self.kind.settings))
        group.wait_until_held([first, second], PARTITIONS)
        records.write(MORE)
        third = group.join(host, self.kind.client, dict(self.kind.settings))
        group.wait_until_held([first, second, third], PARTITIONS)
        records.write(MORE)
        second.leave()
        group.wait_until_held([first, third], PARTITIONS)
        records.write(MORE)
        group.wait_until_processed(records.ends)
        assert group.processed_again() == {}, group.journals()
        assert group.errors() == []

    def a_member_joins_that_will_crash(self, doomed: LineWorker) -> None:
        self.group.join(doomed, self.kind.client, dict(self.kind.settings))
        self.group.wait_until_held(self.group.alive, PARTITIONS)
        self.records.write(MORE)

    def after_the_crash(self) -> None:
        """The others take over what the dead member held; each record is processed at least once."""
        self.group.members[-1].is_alive = False
        self.group.wait_until_held(self.group.alive, PARTITIONS)
        self.records.write(MORE)
        self.group.wait_until_processed(self.records.ends)

    def end(self) -> None:
        for member in self.group.alive:
            member.leave()
        assert committed(self.bootstrap, self.group.group_id) == self.records.ends


def together(stories: list[Story], act: Callable[[Story], None]) -> None:
    """Each story that has not failed yet goes on in a thread of its own."""

    def run(story: Story) -> None:
        try:
            act(story)
        except BaseException as error:
            story.failure = error

    going_on = [story for story in stories if story.failure is None]
    threads = [threading.Thread(target=run, args=(story,), daemon=True) for story in going_on]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(STEP_SECONDS_MAX)
    for story, thread in zip(going_on, threads, strict=True):
        if thread.is_alive():
            story.failure = AssertionError(f"not done within {STEP_SECONDS_MAX} s: {story.group.errors()}")


def tell(
    kinds: Mapping[str, Kind],
    bootstrap: str,
    directory: Path,
    host: LineWorker,
    doomed: LineWorker,
) -> dict[str, Story]:
    stories = {name: Story(kind, bootstrap, directory) for name, kind in kinds.items()}
    listed = list(stories.values())
    together(listed, lambda story: story.without_a_crash(host))
    together(listed, lambda story: story.a_member_joins_that_will_crash(doomed))
    doomed.kill()
    together(listed, lambda story: story.after_the_crash())
    together(listed, lambda story: story.end())
    return stories
