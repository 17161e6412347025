"""The judgement of a trial, from what a program said and what the log has. Pure: values in, values out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from strandline.testing.torture.program import Said

AT_LEAST_ONCE: Final = "at-least-once"
EXACTLY_ONCE: Final = "exactly-once"
_SHOWN_MAX: Final = 5

Place = tuple[str, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """`kind` is lost, duplicated, reordered or stuck; `moment_s` is when it showed, after the start of the trial."""

    kind: str
    text: str
    moment_s: float | None = None
    is_allowed: bool = False  # by the guarantee that was asked for


@dataclass(slots=True, kw_only=True)
class TrialResult:
    fault: str
    role: str
    seconds: float
    fault_s: float | None = None  # when the fault struck
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    skipped: str = ""  # why the fault does not concern this program

    @property
    def passed(self) -> bool:
        return not any(not problem.is_allowed for problem in self.problems)

    def check(self) -> None:
        """Raises AssertionError with the whole verdict if the fault was not survived."""
        if not self.passed:
            raise AssertionError(str(self))

    def as_json(self) -> dict[str, Any]:
        return {
            "fault": self.fault,
            "role": self.role,
            "verdict": "skipped" if self.skipped else "survived" if self.passed else "failed",
            "seconds": round(self.seconds, 1),
            "fault_seconds": None if self.fault_s is None else round(self.fault_s, 1),
            "problems": [asdict(problem) for problem in self.problems],
            "notes": [self.skipped] if self.skipped else self.notes,
        }

    def __str__(self) -> str:
        if self.skipped:
            return f"{self.fault:<22} skipped: {self.skipped}"
        head = f"{self.fault:<22} {'survived' if self.passed else 'FAILED'} ({self.seconds:.1f} s)"
        lines = [head]
        for problem in self.problems:
            when = "" if problem.moment_s is None else f" at {problem.moment_s:.1f} s"
            struck = "" if self.fault_s is None else f", the fault struck at {self.fault_s:.1f} s"
            allowed = " (allowed: at-least-once)" if problem.is_allowed else ""
            lines.append(f"    {problem.kind}: {problem.text}{when}{struck}{allowed}")
        lines += [f"    note: {note}" for note in self.notes]
        return "\n".join(lines)


def judge_consumer(
    said: Sequence[Said],
    expected: Sequence[Place],
    committed: Mapping[tuple[str, int], int],
    guarantee: str,
) -> list[Problem]:
    """`expected` has every record that the program had to deal with; `committed` the group's offsets at the end."""
    done = Counter(each.place for each in said if each.place is not None)
    last_s = max((each.at_s for each in said), default=None)
    problems = []
    missing = [place for place in expected if not done[place]]
    highest: dict[tuple[str, int], int] = {}
    for topic, partition, offset in done:
        highest[topic, partition] = max(offset, highest.get((topic, partition), -1))
    lost = [
        place for place in missing if place[2] < max(committed.get(place[:2], 0), highest.get(place[:2], -1))
    ]
    stuck = [place for place in missing if place not in set(lost)]
    if lost:
        problems.append(
            Problem(
                kind="lost", text=f"{len(lost)} never done: {_shown(lost)}", moment_s=_passed(said, lost[0])
            )
        )
    if stuck:
        problems.append(
            Problem(kind="stuck", text=f"{len(stuck)} not reached: {_shown(stuck)}", moment_s=last_s)
        )
    twice = [place for place, number in done.items() if number > 1 and place is not None]
    if twice:
        problems.append(
            Problem(
                kind="duplicated",
                text=f"{len(twice)} done again: {_shown(twice)}",
                moment_s=_second(said, twice[0]),
                is_allowed=guarantee == AT_LEAST_ONCE,
            )
        )
    return problems + _reordered_places(said)


def _passed(said: Sequence[Said], lost: Place) -> float | None:
    """When the program went past a record; when it last said anything if only its group has gone past it."""
    later = (
        each.at_s for each in said if each.place and each.place[:2] == lost[:2] and each.place[2] > lost[2]
    )
    return next(later, max((each.at_s for each in said), default=None))


def _second(said: Sequence[Said], place: Place) -> float:
    return [each.at_s for each in said if each.place == place][1]


def _reordered_places(said: Sequence[Said]) -> list[Problem]:
    """Records of a partition that were done for the first time after a later one."""
    first: set[Place] = set()
    highest: dict[tuple[str, int], int] = {}
    for each in said:
        if each.place is None or each.place in first:
            continue
        first.add(each.place)
        partition, offset = each.place[:2], each.place[2]
        if offset < highest.get(partition, -1):
            text = f"{_shown([each.place])} was done after offset {highest[partition]}"
            return [Problem(kind="reordered", text=text, moment_s=each.at_s)]
        highest[partition] = offset
    return []


def judge_producer(
    said: Sequence[Said],
    log: Mapping[int, Sequence[str]],
    wanted: int,
    guarantee: str,
    *,
    is_over: bool,
) -> list[Problem]:
    """`log` has the ids of each partition in their order; `wanted` is how many the program had to write."""
    acknowledged = {each.record_id: each.at_s for each in reversed(said) if each.record_id is not None}
    written = Counter(record_id for ids in log.values() for record_id in ids)
    problems = []
    lost = [record_id for record_id in acknowledged if not written[record_id]]
    if lost:
        text = f"{len(lost)} acknowledged and not in the log: {_ids(lost)}"
        problems.append(Problem(kind="lost", text=text, moment_s=acknowledged[lost[0]]))
    missing = [str(number) for number in range(wanted) if str(number) not in acknowledged]
    if missing:
        kind = "lost" if is_over else "stuck"
        text = f"{len(missing)} never acknowledged{', and the program went on' if is_over else ''}: {_ids(missing)}"
        problems.append(Problem(kind=kind, text=text, moment_s=max(acknowledged.values(), default=None)))
    twice = [record_id for record_id, number in written.items() if number > 1]
    if twice:
        problems.append(
            Problem(
                kind="duplicated",
                text=f"{len(twice)} in the log more than once: {_ids(twice)}",
                moment_s=acknowledged.get(twice[0]),
                is_allowed=guarantee == AT_LEAST_ONCE,
            )
        )
    return problems + _reordered_ids(log, acknowledged)


def _reordered_ids(log: Mapping[int, Sequence[str]], acknowledged: Mapping[str, float]) -> list[Problem]:
    """Returns the first number that stands in a partition after a larger one, as a problem."""
    for partition, ids in log.items():
        highest, seen = -1, set()
        for record_id in ids:
            if not record_id.isdecimal() or record_id in seen:
                continue
            seen.add(record_id)
            if int(record_id) < highest:
                text = f"id {record_id} stands after {highest} in partition {partition}"
                return [Problem(kind="reordered", text=text, moment_s=acknowledged.get(record_id))]
            highest = int(record_id)
    return []


def _shown(places: Sequence[Place]) -> str:
    shown = ", ".join(f"{topic}-{partition}@{offset}" for topic, partition, offset in places[:_SHOWN_MAX])
    return shown + (", …" if len(places) > _SHOWN_MAX else "")


def _ids(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_SHOWN_MAX]) + (", …" if len(ids) > _SHOWN_MAX else "")
