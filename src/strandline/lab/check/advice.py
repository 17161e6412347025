"""Advice against findings. A change of settings is advised only after it was played and helped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from strandline.config.presets import INT_MAX_TEXT, REPLICATION_FACTOR
from strandline.lab.check import findings as kinds
from strandline.lab.check.failures import BACK_SECONDS, Failure
from strandline.lab.check.findings import Finding
from strandline.lab.check.settings import MIN_ISR, CheckedSettings, ImpossibleSettings

Changes = Mapping[str, Mapping[str, str]]  # settings by part
Play = Callable[[Failure, CheckedSettings], tuple[Finding, ...]]

_SHORT_SECONDS: Final = 10.0  # a wait that is no longer is nothing to tune away
_BETTER: Final = 0.6  # of the wait without the change
_PATIENT_MS: Final = str(round(BACK_SECONDS * 1000) + 60_000)
_WAITS: Final = (kinds.WAITS, kinds.STOPS)
_IN_WORDS: Final = {
    kinds.REPEATS: (
        "no setting prevents it: commit when records are done, in on_partitions_revoked too, and let processing a "
        "record twice do no harm"
    ),
    kinds.FORGETS: "no setting prevents it: wait for acknowledgements, and flush() before the program ends",
    kinds.BLOCKS: "start the brokers again that have the newest records",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    kind: str  # of the finding
    changes: Changes
    text: str

    def as_json(self) -> dict[str, Any]:
        changes = {part: dict(settings) for part, settings in self.changes.items()}
        return {"kind": self.kind, "changes": changes, "text": self.text}


def advice_on(
    failure: Failure, found: tuple[Finding, ...], settings: CheckedSettings, play: Play
) -> tuple[Advice, ...]:
    """Returns, for each finding that needs advice, the smallest change that helped in a play, or a sentence."""
    is_refused = any(each.kind == kinds.REFUSES for each in found)
    return tuple(
        advice
        for finding in found
        if finding.kind not in _WAITS or (finding.seconds > _SHORT_SECONDS and not is_refused)
        for advice in _against(finding, found, failure, settings, play)
    )


def _against(
    finding: Finding, found: tuple[Finding, ...], failure: Failure, settings: CheckedSettings, play: Play
) -> Iterator[Advice]:
    if finding.kind in _IN_WORDS:
        yield Advice(kind=finding.kind, changes={}, text=_IN_WORDS[finding.kind])
        return
    candidates = list(_candidates(finding.kind, settings))
    together: dict[str, dict[str, str]] = {}
    tried: list[Changes] = list(candidates)
    for changes in candidates:
        together = {
            part: {**together.get(part, {}), **changes.get(part, {})} for part in {**together, **changes}
        }
        tried.append(together)
    for changes in tried:
        try:
            changed = settings.with_changes(changes)
        except ImpossibleSettings:
            continue
        if _helps(finding, found, play(failure, changed)):
            yield Advice(kind=finding.kind, changes=changes, text=_said(changes, settings))
            return
    if finding.kind not in _WAITS:
        yield Advice(kind=finding.kind, changes={}, text="no change of settings that was played prevents it")


def _helps(finding: Finding, before: tuple[Finding, ...], after: tuple[Finding, ...]) -> bool:
    same = [each for each in after if each.kind == finding.kind]
    if _harm(after) - _harm(before):
        return False  # nothing is gained by a shorter wait that loses records
    if finding.kind in _WAITS:
        return all(each.seconds < finding.seconds * _BETTER for each in same)
    return not same


def _harm(found: tuple[Finding, ...]) -> set[str]:
    return {each.kind for each in found if each.kind in kinds.HARMFUL or each.kind == kinds.BLOCKS}


def _said(changes: Changes, settings: CheckedSettings) -> str:
    said = ", ".join(
        f"{part}: {' '.join(f'{key}={value}' for key, value in settings.items())}"
        for part, settings in changes.items()
    )
    factor = int(changes.get("topic", {}).get(REPLICATION_FACTOR, "0"))
    if settings.brokers and factor > settings.brokers:
        said += f" (the cluster has {settings.brokers} of the {factor} brokers that this needs)"
    return said


def _candidates(kind: str, settings: CheckedSettings) -> Iterator[Changes]:
    """Returns changes that could help, the smallest first."""
    factor = settings.replication_factor
    durable = {"acks": "all", "enable.idempotence": "true"}
    if "retries" in settings.producer:
        durable["retries"] = INT_MAX_TEXT
    match kind:
        case kinds.LOSES:
            if settings.acks != "all":
                yield {"producer": durable}
            if settings.topic.get("unclean.leader.election.enable") == "true":
                yield {"topic": {"unclean.leader.election.enable": "false"}}
            if settings.min_isr < 2 <= factor - 1:
                yield {"topic": {MIN_ISR: "2"}}
            if factor < 3:
                yield {"topic": {REPLICATION_FACTOR: "3", MIN_ISR: "2"}}
            yield {"topic": {"flush.messages": "1"}}
        case kinds.DUPLICATES | kinds.REORDERS:
            yield {"producer": durable}
        case kinds.SKIPS:
            if settings.cluster.get("offsets.topic.replication.factor") in ("1", "2"):
                yield {"cluster": {"offsets.topic.replication.factor": "3"}}
            yield {"consumer": {"auto.offset.reset": "earliest"}}
        case kinds.READS_ABORTED:
            yield {"consumer": {"isolation.level": "read_committed"}}
        case kinds.REFUSES:
            if "retries" in settings.producer:
                yield {"producer": {"retries": INT_MAX_TEXT}}
            if settings.min_isr == factor and factor > 2:
                yield {"topic": {MIN_ISR: str(factor - 1)}}
            if factor < 3:
                yield {"topic": {REPLICATION_FACTOR: "3", MIN_ISR: "2"}}
            yield {"producer": {"delivery.timeout.ms": _PATIENT_MS}}
        case kinds.WAITS:
            if factor < 3:
                yield {"topic": {REPLICATION_FACTOR: "3", MIN_ISR: "2"}}
            yield {"producer": {"request.timeout.ms": "10000"}}
        case kinds.STOPS:
            yield {"consumer": {"group.instance.id": "one-for-each-member"}}
            yield {"consumer": {"session.timeout.ms": "15000", "heartbeat.interval.ms": "3000"}}
