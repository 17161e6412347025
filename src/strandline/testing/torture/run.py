"""Runs trials: a program, a fault, and the verdict on what the program says that it has done."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Final

from strandline.base.ids import TopicPartition
from strandline.client.sync import Consumer
from strandline.testing.clusters import Cluster, cluster
from strandline.testing.torture.program import Said
from strandline.testing.torture.stage import CLUSTER_SETTINGS, CONSUMER, PRODUCER, Skipped, Stage
from strandline.testing.torture.trials import Trial
from strandline.testing.torture.verdict import (
    AT_LEAST_ONCE,
    EXACTLY_ONCE,
    Problem,
    TrialResult,
    judge_consumer,
    judge_producer,
)

RECORDS: Final = 60  # that a producer is asked to write
# A program that has said nothing new for as long, though there is work, is stuck.
QUIET_S: Final = 12.0
FIRST_S: Final = 30.0
_SESSION_S: Final = 60.0  # Java's and librdkafka's default is 45 s
_TRIAL_S: Final = 600.0  # even for a program that always moves a little
_numbers = count(1)


class Torture:
    """Runs one trial after the other on a cluster."""

    def __init__(
        self,
        started: Cluster,
        command: str,
        *,
        role: str = CONSUMER,
        guarantee: str | None = None,
        quiet_s: float = QUIET_S,
        first_s: float = FIRST_S,
    ) -> None:
        """`guarantee` is at-least-once or exactly-once; by default the one that the role should keep."""
        self._cluster = started
        self._command = command
        self._role = role
        self._guarantee = guarantee or (AT_LEAST_ONCE if role == CONSUMER else EXACTLY_ONCE)
        self._quiet_s = quiet_s
        self._first_s = first_s

    def run(self, trial: Trial) -> TrialResult:
        began = time.monotonic()
        if self._role not in trial.roles:
            return TrialResult(
                fault=trial.name, role=self._role, seconds=0, skipped=f"it does not concern a {self._role}"
            )
        stage = Stage(self._cluster, f"{trial.name}-{next(_numbers)}", self._role, self._command, RECORDS)
        problems: list[Problem] = []
        skipped = ""
        try:
            stage.open()
            problems = (self._consumer if self._role == CONSUMER else self._producer)(stage, trial)
        except Skipped as why:
            skipped = str(why)
        finally:
            stage.close()
        return TrialResult(
            fault=trial.name,
            role=self._role,
            seconds=time.monotonic() - began,
            fault_s=stage.fault_s,
            problems=problems,
            notes=stage.program.notes,
            skipped=skipped,
        )

    def _consumer(self, stage: Stage, trial: Trial) -> list[Problem]:
        stage.write_burst(2)
        stage.program.start()
        if not stage.wait_said(5, self._first_s):
            return [_nothing_said(stage, self._first_s)]
        trial.strike(stage)
        stage.write_burst(2)
        expected = _expected(stage)
        if not self._settle(stage, lambda: _is_done(stage.program.said, expected)):
            stage.write_burst()  # a program that deals with these has passed over the others, and is not stuck
            more = _expected(stage)
            self._settle(
                stage, lambda: _is_done(stage.program.said, [each for each in more if each not in expected])
            )
            expected = more
        if stage.program.has_finished:
            stage.program.notes.append(
                f"{stage.program.ended_s:.1f} s: the program ended by itself, without an error"
            )
        stage.program.stop()
        return judge_consumer(stage.program.said, expected, _committed(stage), self._guarantee)

    def _producer(self, stage: Stage, trial: Trial) -> list[Problem]:
        stage.hold_producer()
        stage.program.start()
        if not stage.wait(lambda: stage.is_held, self._first_s):
            return [_nothing_said(stage, self._first_s)]
        trial.strike(stage)
        stage.release()
        self._settle(stage, lambda: stage.program.has_finished or _acknowledged(stage) >= stage.records)
        is_over = stage.program.has_finished
        stage.program.stop()
        stage.repair()
        return judge_producer(
            stage.program.said, _ids_in_log(stage), stage.records, self._guarantee, is_over=is_over
        )

    def _settle(self, stage: Stage, is_done: Callable[[], bool]) -> bool:
        """Waits until the work is done; False if nothing has moved for too long."""
        last, since = -1, time.monotonic()
        began, deadline = since, since + _TRIAL_S
        while not is_done() and not stage.program.has_given_up:
            now, count = time.monotonic(), stage.count
            if count != last:
                last, since = count, now
            if now - since > self._quiet_s or now > deadline:
                if now > began + _SESSION_S or not stage.is_held_by_the_dead:
                    return False
                since = now
            time.sleep(0.05)
        return is_done()


def _nothing_said(stage: Stage, seconds: float) -> Problem:
    ended = f"; it ended with {stage.program.exit_codes}" if stage.program.exit_codes else ""
    return Problem(
        kind="stuck",
        text=f"the program was not at work within {seconds:g} s{ended}: a consumer prints a line of JSON with topic, "
        "partition and offset for each record that is done, a producer one with id",
    )


def _expected(stage: Stage) -> list[tuple[str, int, int]]:
    starts = stage.starts()
    return [
        (place.topic, place.partition, offset)
        for place, end in stage.ends().items()
        for offset in range(starts[place], end)
        if (place.topic, place.partition, offset) not in stage.poison
    ]


def _is_done(said: Sequence[Said], expected: Sequence[tuple[str, int, int]]) -> bool:
    return set(expected) <= {each.place for each in said}


def _committed(stage: Stage) -> dict[tuple[str, int], int]:
    offsets = stage.admin.list_group_offsets(stage.group)
    return {
        (place.topic, place.partition): committed.offset for place, committed in offsets.items() if committed
    }


def _acknowledged(stage: Stage) -> int:
    return len({each.record_id for each in stage.program.said if each.record_id is not None})


def _ids_in_log(stage: Stage) -> dict[int, list[str]]:
    """Returns the ids of the committed records, by partition."""
    places = [TopicPartition(stage.topic, number) for number in range(stage.partitions)]
    found: dict[int, list[str]] = {place.partition: [] for place in places}
    settings = {**stage.cluster.client_settings, "isolation.level": "read_committed"}
    with Consumer(settings) as consumer:
        consumer.assign(places)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(places)
        deadline = time.monotonic() + 30
        while any(consumer.position(place) < end for place, end in ends.items()):
            for record in consumer.poll(1.0):
                found[record.partition].append(_id_of(record.value))
            if time.monotonic() > deadline:
                raise TimeoutError(f"{stage.topic} could not be read to its end within 30 s")
    return found


def _id_of(value: bytes | None) -> str:
    """Returns a record's id: its value, or the `id` of the JSON object in it."""
    text = (value or b"").decode(errors="replace")
    try:
        parsed = json.loads(text)
    except ValueError:
        return text
    return str(parsed["id"]) if isinstance(parsed, dict) and "id" in parsed else str(parsed)


@contextmanager
def torture(
    command: str,
    *,
    role: str = CONSUMER,
    guarantee: str | None = None,
    quiet_s: float = QUIET_S,
    first_s: float = FIRST_S,
) -> Iterator[Torture]:
    """Runs a cluster of three nodes, on which trials of a command can be run."""
    if role not in (CONSUMER, PRODUCER):
        raise ValueError(f"a program is a consumer or a producer, not {role!r}")
    with cluster(nodes=3, **CLUSTER_SETTINGS) as started:  # type: ignore[arg-type]
        yield Torture(started, command, role=role, guarantee=guarantee, quiet_s=quiet_s, first_s=first_s)
