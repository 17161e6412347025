"""Holds conversations with Strandline and with Apache Kafka, and compares the responses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.compat.oracle_groups import Talk
from tests.oracle.apache_kafka import QUICK_START, ApacheKafka

Conversation = Callable[[Talk], None]
# By conversation: the answers by question, or what ended it.
Held = dict[str, dict[str, Any] | BaseException]


@contextmanager
def held_with_both(
    hold_all: Callable[[str], Held], settings: Mapping[str, str], java: Path, jars: Path, directory: Path
) -> Iterator[tuple[Held, Held]]:
    """Returns the results of `hold_all(bootstrap)` with Strandline and with Apache Kafka, both with these settings."""
    from strandline.testing import running_broker

    kafka = ApacheKafka(
        java=java, jars=jars, directory=directory, settings=dict(settings), jvm_options=QUICK_START
    )
    with running_broker(**settings) as broker, kafka:
        yield hold_all(broker.bootstrap), hold_all(kafka.bootstrap)


def hold(
    bootstrap: str, topic_ids: dict[str, bytes], conversation: Conversation
) -> dict[str, Any] | BaseException:
    with ExitStack() as stack:
        talk = Talk(bootstrap, topic_ids, stack)
        try:
            conversation(talk)
        except BaseException as error:
            error.add_note(f"after {list(talk.answers)}")
            return error
        return talk.answers


def check_same(held: tuple[Held, Held], conversation: str) -> None:
    ours, theirs = (found[conversation] for found in held)
    if isinstance(theirs, BaseException):
        raise theirs
    if isinstance(ours, BaseException):
        raise ours
    different = {name: (ours.get(name), theirs[name]) for name in theirs if ours.get(name) != theirs[name]}
    assert not different, f"(ours, theirs) by question: {different}"
    assert list(ours) == list(theirs)
