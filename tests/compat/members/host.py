"""Programs that host members of groups, and groups made of them."""

from __future__ import annotations

import itertools
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.compat.clients.interface import eventually
from tests.compat.members.journal import Journal
from tests.oracle.java_worker import JavaWorker, LineWorker

CALL_TIMEOUT_S = 90.0
WAIT_SECONDS_MAX = 90.0
_numbers = itertools.count()

# Short enough for a test to wait for a crash to be noticed, long enough for a busy machine.
SESSION_TIMEOUT_MS = 6000
HEARTBEAT_MS = 300
# What a broker needs so that members may ask for that.
QUICK_SESSIONS = {
    "group.min.session.timeout.ms": "100",
    "group.consumer.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "group.consumer.min.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_MS),
    "group.consumer.min.heartbeat.interval.ms": str(HEARTBEAT_MS),
}


def python_host() -> LineWorker:
    return LineWorker([sys.executable, "-m", "tests.compat.members.python_members"])


def java_host(java: Path, jars: Path) -> LineWorker:
    source = Path(__file__).parents[1] / "java" / "GroupMembers.java"
    return JavaWorker(java=java, jars=jars, source=source)


_one_question_at_a_time = threading.Lock()


def ask(host: LineWorker, question: dict[str, Any]) -> None:
    with _one_question_at_a_time:
        host.call(question, timeout_s=CALL_TIMEOUT_S)


@dataclass(slots=True)
class Member:
    name: str
    host: LineWorker
    path: Path
    is_alive: bool = True

    @property
    def journal(self) -> Journal:
        return Journal().read(self.path)

    def leave(self) -> None:
        ask(self.host, {"operation": "stop", "member": self.name})
        eventually(lambda: self.journal.is_closed, lambda closed: closed)
        self.is_alive = False


@dataclass(slots=True)
class Group:
    """A group of a test: members of any kind on one topic."""

    group_id: str
    topic: str
    bootstrap: str
    directory: Path
    members: list[Member] = field(default_factory=list)

    def join(
        self, host: LineWorker, client: str, settings: dict[str, Any] | None = None, topic: str | None = None
    ) -> Member:
        number = next(_numbers)
        name = f"{client}-{number}"
        member = Member(name, host, self.directory / f"{name}.journal")
        given = {
            "bootstrap.servers": self.bootstrap,
            "group.id": self.group_id,
            "client.id": name,
            **_timeouts(client, settings or {}),
        }
        question = {
            "operation": "start",
            "member": name,
            "client": client,
            "journal": str(member.path),
            "topic": topic or self.topic,
            "settings": given,
        }
        ask(host, question)
        self.members.append(member)
        return member

    @property
    def alive(self) -> list[Member]:
        return [member for member in self.members if member.is_alive]

    def processed(self) -> Counter[tuple[int, int]]:
        found: Counter[tuple[int, int]] = Counter()
        for member in self.members:
            found += member.journal.processed
        return found

    def processed_again(self) -> dict[tuple[int, int], int]:
        """Returns the records that were processed more than once although no commit of them was refused."""
        refused = set().union(*(member.journal.refused for member in self.members))
        return {
            place: count for place, count in self.processed().items() if count > 1 and place not in refused
        }

    def errors(self) -> list[str]:
        return [f"{member.name}: {error}" for member in self.members for error in member.journal.errors]

    def journals(self) -> str:
        """Returns the members' journals as text: assignments and commits in their order."""
        return "\n".join(f"{member.name}:\n{member.path.read_text()}" for member in self.members)

    def wait_until_processed(self, expected: dict[int, int]) -> None:
        """By partition the end offset: everything below it was processed by someone."""
        wanted = {(p, offset) for p, end in expected.items() for offset in range(end)}
        self._wait(lambda: sorted(wanted - set(self.processed()))[:3], lambda missing: not missing)

    def wait_until_held(self, members: list[Member], partitions: int) -> None:
        """These members, and nobody else who is alive, hold all partitions among them, each of them some."""

        def held() -> list[tuple[str, list[int]]]:
            return [(m.name, sorted(m.journal.held)) for m in members]

        def is_shared(found: list[tuple[str, list[int]]]) -> bool:
            return all(ps for _, ps in found) and sorted(p for _, ps in found for p in ps) == list(
                range(partitions)
            )

        self._wait(held, is_shared)

    def _wait(self, ask: Callable[[], Any], holds: Callable[[Any], bool]) -> None:
        try:
            eventually(ask, holds, timeout_s=WAIT_SECONDS_MAX)
        except AssertionError as error:
            raise AssertionError(
                f"{error}; errors {self.errors()}; the broker says {self._told()}"
            ) from error

    def _told(self) -> str:
        """State and members as the coordinator has them: what a client has not heard of, or does not follow."""
        try:
            admin = AdminClient({"bootstrap.servers": self.bootstrap})
            told = admin.describe_consumer_groups([self.group_id])[self.group_id].result(10)
        except KafkaException as error:
            return repr(error)
        members = {
            member.client_id: [p.partition for p in member.assignment.topic_partitions]
            for member in told.members
        }
        return f"{told.state.name}, {members}"


def _timeouts(client: str, settings: dict[str, Any]) -> dict[str, Any]:
    if settings.get("group.protocol") == "consumer":
        return settings
    number: type[int] | type[str] = str if client in ("java", "confluent") else int
    return {
        "session.timeout.ms": number(SESSION_TIMEOUT_MS),
        "heartbeat.interval.ms": number(HEARTBEAT_MS),
        **settings,
    }
