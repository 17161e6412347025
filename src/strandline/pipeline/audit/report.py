"""The result of an audit, as values and as text. Every kind of mistake but `unexpected` breaks the promise of the
log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

BROKEN: Final = ("lost", "duplicated", "misplaced", "reordered", "unnamed")
MEANINGS: Final = {
    "lost": "acknowledged, and not in the log",
    "duplicated": "in the log, or acknowledged, more than once",
    "misplaced": "not at the offset of the acknowledgement",
    "reordered": "after a later record of its key",
    "unnamed": "rows of the ledger without an id",
    "unexpected": "in the log, and not acknowledged: the acknowledgement may have been lost",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFinding:
    """The ids of one partition that have the same mistake, or none."""

    topic: str | None
    partition: int | None
    lost: bool
    duplicated: bool
    misplaced: bool
    reordered: bool
    unexpected: bool
    unnamed: bool
    sample_group: int | None
    ids: int
    told: int
    seen: int
    sample: dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """The result of an audit."""

    topics: tuple[str, ...]
    acknowledged: int
    read: int
    counts: dict[str, int]
    partitions: dict[str, dict[str, int]]  # counts of what is wrong, by partition
    samples: dict[str, list[dict[str, Any]]]
    has_order: bool

    @property
    def held(self) -> bool:
        """True if no promise is broken."""
        return not any(self.counts[name] for name in BROKEN)

    @classmethod
    def of(
        cls, findings: Iterable[AuditFinding], *, topics: tuple[str, ...], samples_max: int, has_order: bool
    ) -> AuditReport:
        """Returns the report of these findings."""
        counts = dict.fromkeys(MEANINGS, 0)
        partitions: dict[str, dict[str, int]] = {}
        samples: dict[str, list[dict[str, Any]]] = {}
        acknowledged = read = 0
        for finding in findings:
            acknowledged += finding.told
            read += finding.seen
            for name, count in _broken_counts(finding):
                counts[name] += count
                where = partitions.setdefault(f"{finding.topic}-{finding.partition}", {})
                where[name] = where.get(name, 0) + count
                if finding.sample is not None:
                    samples.setdefault(name, []).append(finding.sample)
        return cls(
            topics=topics,
            acknowledged=acknowledged,
            read=read,
            counts=counts,
            partitions=dict(sorted(partitions.items())),
            samples={name: sorted(rows, key=_order)[:samples_max] for name, rows in samples.items()},
            has_order=has_order,
        )

    def as_json(self) -> dict[str, Any]:
        """Returns the report as values that JSON has."""
        return {
            "held": self.held,
            "topics": list(self.topics),
            "acknowledged": self.acknowledged,
            "read": self.read,
            **self.counts,
            "order_checked": self.has_order,
            "partitions": self.partitions,
            "samples": self.samples,
        }

    def as_text(self) -> str:
        """Returns the report as text."""
        lines = [f"{self.acknowledged:,} acknowledged, {self.read:,} read from {', '.join(self.topics)}"]
        for name, meaning in MEANINGS.items():
            if name == "reordered" and not self.has_order:
                lines.append("  reordered    not checked")
                continue
            lines.append(f"  {name:<11} {self.counts[name]:>12,}  {meaning}")
        for where, counts in self.partitions.items():
            lines.append(f"{where}: " + ", ".join(f"{count:,} {name}" for name, count in counts.items()))
        for name, samples in self.samples.items():
            lines += [f"{name}, such as:", *(f"  {_described(each)}" for each in samples)]
        lines.append("VERDICT: held" if self.held else "VERDICT: BROKEN")
        return "\n".join(lines)


def _broken_counts(finding: AuditFinding) -> Iterable[tuple[str, int]]:
    """Yields each kind of mistake with its number of records. Of a duplicated id the records after the first one
    count."""
    if finding.unnamed:
        # The log may hold records for which the id's expression is null: they were not acknowledged.
        yield from ((name, count) for name, count in _unnamed(finding) if count)
        return
    if finding.duplicated:
        yield "duplicated", max(finding.seen, finding.told) - finding.ids
    for name in ("lost", "misplaced", "reordered", "unexpected"):
        if getattr(finding, name):
            yield name, finding.ids


def _unnamed(finding: AuditFinding) -> Iterable[tuple[str, int]]:
    yield "unnamed", finding.told
    yield "unexpected", finding.seen


def _order(sample: dict[str, Any]) -> tuple[int, str]:
    return (-1 if sample["offset"] is None else sample["offset"], str(sample["id"]))


def _described(sample: dict[str, Any]) -> str:
    words = [f"id {sample['id']}"]
    for name, place in (("acknowledged at", sample["told_place"]), ("found at", sample["place"])):
        if place is not None and place["topic"] is not None:
            words.append(f"{name} {place['topic']}-{place['partition']} offset {place['offset']}")
    if sample["key"] is not None:
        words.append(f"key {sample['key']}")
    if sample["sequence"] is not None:
        words.append(f"sequence {sample['sequence']}")
    if sample["seen"] > 1:
        words.append(f"{sample['seen']} times")
    return ", ".join(words)
