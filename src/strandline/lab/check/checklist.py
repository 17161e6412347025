"""The eight points for consumer groups of the architecture document, each judged by settings or by what was played."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from strandline.lab.check import findings as kinds
from strandline.lab.check.findings import Finding
from strandline.lab.check.settings import CheckedSettings

GOOD: Final = "good"
CHANGE: Final = "change"  # something should be changed
YOURS: Final = "yours"  # no setting says it: the application or its operators do
_NAMES_WITHOUT_MEANING: Final = {"", "group", "test", "my-group", "mygroup", "group1", "consumer", "foo"}
_INTERVAL_MS: Final = "300000"
_RECORDS: Final = "500"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecklistPoint:
    point: str  # as the document says it
    verdict: str
    text: str

    def as_json(self) -> dict[str, Any]:
        return {"point": self.point, "verdict": self.verdict, "text": self.text}


def checklist(
    settings: CheckedSettings, played: Mapping[str, tuple[Finding, ...]]
) -> tuple[ChecklistPoint, ...]:
    """`played` has the findings of the failures of consumers, by the failures' names."""
    consumer = settings.consumer
    return (
        _group_id(consumer),
        _offset_reset(consumer, played),
        _poll_records(consumer),
        _listener(consumer, played),
        _commits(consumer, played),
        ChecklistPoint(
            point="Monitor consumer lag",
            verdict=YOURS,
            text="no setting of a consumer; `strandline lag watch` and the brokers' metrics show it",
        ),
        _static_membership(consumer, played),
        _assignor(consumer, played),
    )


def _of(played: Mapping[str, tuple[Finding, ...]], name: str, kind: str) -> Finding | None:
    return next((each for each in played.get(name, ()) if each.kind == kind), None)


def _group_id(consumer: Mapping[str, str]) -> ChecklistPoint:
    name = consumer.get("group.id", "")
    is_good = name.lower() not in _NAMES_WITHOUT_MEANING and not name.startswith("console-consumer")
    said = (
        f"group.id={name}" if name else "there is no group.id: nothing is committed, and nothing shared out"
    )
    return ChecklistPoint(
        point="Set meaningful group.id",
        verdict=GOOD if is_good else CHANGE,
        text=said if is_good or not name else f"{said} says nothing about the application",
    )


def _offset_reset(consumer: Mapping[str, str], played: Mapping[str, tuple[Finding, ...]]) -> ChecklistPoint:
    given = consumer.get("auto.offset.reset")
    skipped = _of(played, "group-has-no-offsets", kinds.SKIPS)
    text = "auto.offset.reset={}{}: a group without offsets {}".format(
        given or "latest",
        "" if given else " by default",
        f"skipped {skipped.records} records when it was played"
        if skipped
        else "skipped nothing when it was played",
    )
    return ChecklistPoint(
        point="Configure auto.offset.reset (earliest/latest)",
        verdict=CHANGE if given is None else GOOD,
        text=text,
    )


def _poll_records(consumer: Mapping[str, str]) -> ChecklistPoint:
    records = int(consumer.get("max.poll.records", _RECORDS))
    interval_ms = int(consumer.get("max.poll.interval.ms", _INTERVAL_MS))
    each_ms = interval_ms / records
    return ChecklistPoint(
        point="Set appropriate max.poll.records",
        verdict=YOURS if each_ms >= 1 else CHANGE,
        text=(
            f"{records} records within {interval_ms / 1000:g} s: a consumer that needs longer than {each_ms:g} ms for "
            "each loses its partitions"
        ),
    )


def _listener(consumer: Mapping[str, str], played: Mapping[str, tuple[Finding, ...]]) -> ChecklistPoint:
    point = "Handle rebalance with ConsumerRebalanceListener"
    repeated = _of(played, "member-joins", kinds.REPEATS)
    if repeated is None:
        return ChecklistPoint(point=point, verdict=GOOD, text="nothing was read twice when a member joined")
    return ChecklistPoint(
        point=point,
        verdict=YOURS,
        text=(
            f"when a member joined, {repeated.records} records were read twice: a listener that commits in "
            "on_partitions_revoked prevents it"
        ),
    )


def _commits(consumer: Mapping[str, str], played: Mapping[str, tuple[Finding, ...]]) -> ChecklistPoint:
    repeated = _of(played, "consumer-crashes", kinds.REPEATS)
    skipped = _of(played, "consumer-crashes", kinds.SKIPS)
    is_auto = consumer.get("enable.auto.commit", "true") == "true"
    how = (
        f"every {int(consumer.get('auto.commit.interval.ms', '5000')) / 1000:g} s while it polls"
        if is_auto
        else "by the application"
    )
    after = f"{repeated.records} records were read again" if repeated else "nothing was read again"
    return ChecklistPoint(
        point="Commit offsets appropriately (auto or manual)",
        verdict=CHANGE if skipped else GOOD,
        text=f"commits are made {how}; after a crash {after}{', and some were skipped' if skipped else ''}",
    )


def _static_membership(
    consumer: Mapping[str, str], played: Mapping[str, tuple[Finding, ...]]
) -> ChecklistPoint:
    stopped = _of(played, "consumer-crashes", kinds.STOPS)
    seconds = f"{stopped.seconds:.0f} s" if stopped else "less than a second"
    has_id = "group.instance.id" in consumer
    return ChecklistPoint(
        point="Consider static membership for stable deployments",
        verdict=GOOD if has_id else CHANGE,
        text=(
            f"group.instance.id is {'set' if has_id else 'not set'}: after a crash the next start of the program had "
            f"its partitions after {seconds}"
        ),
    )


def _assignor(consumer: Mapping[str, str], played: Mapping[str, tuple[Finding, ...]]) -> ChecklistPoint:
    is_new = consumer.get("group.protocol", "classic").lower() == "consumer"
    strategy = consumer.get("partition.assignment.strategy", "")
    stopped = _of(played, "member-joins", kinds.STOPS)
    seconds = f"{stopped.seconds:.1f} s" if stopped else "less than a second"
    if is_new:
        how = "group.protocol=consumer is cooperative by itself"
    elif strategy:
        how = f"partition.assignment.strategy={strategy}"
    else:
        how = "partition.assignment.strategy is the default, which begins with the range assignor and stops all members"
    is_cooperative = is_new or strategy.endswith(("CooperativeStickyAssignor", "cooperative-sticky"))
    return ChecklistPoint(
        point="Use cooperative sticky assignor (2.4+)",
        verdict=GOOD if is_cooperative else CHANGE,
        text=f"{how}; when a member joined, the first one read nothing for {seconds}",
    )
