"""Conversations about groups, held with any broker; `test_oracle_groups` compares them.

A conversation is a function that asks on one or several connections and names what it wants compared. Member ids and
topic ids are each broker's own; they are replaced by the order of their first appearance.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from strandline.wire.api import k19_create_topics as create_topics
from strandline.wire.api.k10_find_coordinator import FindCoordinatorRequest
from strandline.wire.schema import Request, Struct
from tests.compat.wire import WireClient
from tests.group_requests import fitted

COORDINATOR_LOAD_IN_PROGRESS = 14
COORDINATOR_NOT_AVAILABLE = 15
NOT_COORDINATOR = 16
WORDS = {"error_message", "throttle_time_ms"}
OWN_PLACES = {"host", "port", "node_id", "client_host"}
OWN_TIMES = {"transaction_start_time_ms", "last_timestamp", "log_append_time_ms", "timestamp"}
# In the form with dashes and in Kafka's own.
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|^[\w-]{22}$")
PATIENCE_S = 15.0


class Talk:
    """One conversation with one broker."""

    def __init__(self, bootstrap: str, topic_ids: dict[str, bytes], stack: ExitStack) -> None:
        self._bootstrap = bootstrap
        self._stack = stack
        self.topic_ids = topic_ids
        self._clients: dict[str, WireClient] = {}
        self._waiting: dict[str, tuple[str, type[Request], int]] = {}
        self._seen: dict[str, str] = {}
        self.answers: dict[str, Any] = {}

    def __call__(self, name: str, request: Request, version: int, *, on: str = "a") -> Any:
        """Asks and notes the answer under this name; what says itself to ask again is asked again."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer: Any = self._client(on).call(fitted(request, version), version)
            if not _is_unsettled(answer) or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        self.note(name, answer)
        return answer

    def quietly(self, request: Request, version: int, *, on: str = "a") -> Any:
        """Asks without comparing."""
        name = f"quiet {len(self.answers)} {time.monotonic()}"
        answer = self(name, request, version, on=on)
        del self.answers[name]
        return answer

    def until(self, ask: Callable[[], Any], holds: Callable[[Any], bool]) -> Any:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = ask()
            if holds(answer):
                return answer
            assert time.monotonic() < deadline, f"still {answer}"
            time.sleep(0.05)

    def send(self, name: str, request: Request, version: int, *, on: str) -> None:
        """Asks and does not wait."""
        self._client(on).send(fitted(request, version), version)
        self._waiting[on] = (name, type(request), version)

    def receive(self, on: str) -> Any:
        name, request, version = self._waiting.pop(on)
        answer = self._client(on).receive(request, version)
        self.note(name, answer)
        return answer

    def note(self, name: str, answer: Any) -> None:
        assert name not in self.answers, name
        self.answers[name] = self._plain(answer)

    def _client(self, name: str) -> WireClient:
        if name not in self._clients:
            self._clients[name] = self._stack.enter_context(WireClient(self._bootstrap, client_id="client"))
        return self._clients[name]

    def _plain(self, value: Any, name: str = "") -> Any:
        if isinstance(value, Struct):
            return {
                f.name: self._plain(getattr(value, f.name), f.name)
                for f in value.FIELDS
                if f.name not in WORDS
            }
        if isinstance(value, tuple):
            items = [self._plain(item) for item in value]
            return sorted(items, key=repr) if items and isinstance(items[0], dict) else items
        if name == "producer_id" and value >= 0:
            return self._seen.setdefault(f"producer {value}", f"<{len(self._seen)}>")
        if name in OWN_TIMES:
            return "some time" if value > 0 else value
        if name == "records" and value is not None:
            return len(value)  # markers have a time
        if name in OWN_PLACES:
            return "own" if value not in (None, "", -1) else value
        if isinstance(value, str):
            return _UUID.sub(lambda found: self._seen.setdefault(found[0], f"<{len(self._seen)}>"), value)
        if isinstance(value, bytes | bytearray | memoryview):
            names = {found: topic for topic, found in self.topic_ids.items()}
            return names.get(bytes(value), bytes(value))
        return value


def _is_unsettled(answer: Any) -> bool:
    if isinstance(answer, Struct):
        code = getattr(answer, "error_code", 0)
        again = (COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR)
        return code in again or any(_is_unsettled(getattr(answer, f.name)) for f in answer.FIELDS)
    return isinstance(answer, tuple) and any(_is_unsettled(item) for item in answer)


def prepare(bootstrap: str, topics: dict[str, int]) -> dict[str, bytes]:
    """Topics and the offsets topic; the ids of the topics."""
    with WireClient(bootstrap) as client:
        made: Any = client.call(
            create_topics.CreateTopicsRequest(
                topics=tuple(
                    create_topics.CreatableTopic(
                        name=name, num_partitions=count, replication_factor=1, assignments=(), configs=()
                    )
                    for name, count in topics.items()
                ),
                timeout_ms=10_000,
            ),
            7,
        )
        deadline = time.monotonic() + PATIENCE_S
        while _is_unsettled(client.call(FindCoordinatorRequest(coordinator_keys=("warm",)), 4)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return {topic.name: topic.topic_id for topic in made.topics}
