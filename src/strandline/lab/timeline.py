"""The timeline of a run: what happened when, each with the state of the partition at that moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from strandline.lab.numbers import in_brief

# Kinds of entries.
STEP: Final = "step"  # the scenario did something
CLUSTER: Final = "cluster"  # leaders, replicas in sync, brokers
PRODUCER: Final = "producer"  # what a producer was told
CONSUMER: Final = "consumer"  # what a consumer saw


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaView:
    broker: int
    role: str  # leader, follower, down or none
    epoch: int
    end_offset: int
    high_watermark: int
    last_stable_offset: int

    def as_json(self) -> dict[str, Any]:
        return {
            "broker": self.broker,
            "role": self.role,
            "epoch": self.epoch,
            "leo": self.end_offset,
            "hw": self.high_watermark,
            "lso": self.last_stable_offset,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """The partition as the controller has it, and each replica as its broker has it."""

    leader: int
    epoch: int
    in_sync: tuple[int, ...]
    eligible_leaders: tuple[int, ...]
    replicas: tuple[ReplicaView, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "leader": self.leader,
            "epoch": self.epoch,
            "isr": list(self.in_sync),
            "elr": list(self.eligible_leaders),
            "replicas": [each.as_json() for each in self.replicas],
        }


def partition_view(state: Mapping[str, Any], replicas: Iterable[ReplicaView]) -> PartitionView:
    """Returns the view of a partition from its state, as `node.faults.observation` gives it."""
    return PartitionView(
        leader=state["leader"],
        epoch=state["epoch"],
        in_sync=tuple(state["isr"]),
        eligible_leaders=tuple(state["elr"]),
        replicas=tuple(replicas),
    )


def replica_view(broker: int, is_running: bool, state: Mapping[str, Any] | None) -> ReplicaView:
    """Returns the view of a broker's replica from its state, which is None if the broker has no replica."""
    if state is None:
        return ReplicaView(
            broker=broker,
            role="none" if is_running else "down",
            epoch=-1,
            end_offset=-1,
            high_watermark=-1,
            last_stable_offset=-1,
        )
    return ReplicaView(
        broker=broker,
        role=state["role"],
        epoch=state["epoch"],
        end_offset=state["leo"],
        high_watermark=state["hw"],
        last_stable_offset=state["lso"],
    )


@dataclass(slots=True)
class TimelineEntry:
    at: float  # seconds since the beginning of the steps
    kind: str
    text: str
    view: PartitionView
    numbers: list[int] = field(default_factory=list)  # of records, written after the text

    @property
    def line(self) -> str:
        return f"{self.text} {in_brief(self.numbers)}" if self.numbers else self.text

    def as_json(self) -> dict[str, Any]:
        return {"at": round(self.at, 3), "kind": self.kind, "text": self.line, "state": self.view.as_json()}


class Timeline:
    def __init__(self) -> None:
        self.entries: list[TimelineEntry] = []

    def add(
        self, at: float, kind: str, text: str, view: PartitionView, numbers: list[int] | None = None
    ) -> None:
        """Adds an entry. Records with the same text share one entry, unless an entry of another kind is in between."""
        told = list(numbers or ())
        for place in reversed(range(len(self.entries))) if told else ():
            last = self.entries[place]
            if last.kind != kind or not last.numbers:
                break
            if last.text == text:
                del self.entries[place]
                told = last.numbers + told
                break
        self.entries.append(TimelineEntry(at, kind, text, view, told))

    def as_json(self) -> list[dict[str, Any]]:
        return [each.as_json() for each in self.entries]

    def as_text(self) -> str:
        """Returns a line for each entry, and below it the partition if that has changed."""
        lines, shown = [], ""
        for entry in self.entries:
            mark = {STEP: ">", CLUSTER: "*", PRODUCER: "p", CONSUMER: "c"}[entry.kind]
            lines.append(f"{entry.at:9.3f} s  {mark} {entry.line}")
            state = view_text(entry.view)
            if state != shown:
                lines += [f"{'':14}{line}" for line in state.splitlines()]
                shown = state
        return "\n".join(lines)


def view_text(view: PartitionView) -> str:
    head = (
        f"leader {view.leader if view.leader >= 0 else 'none'}, epoch {view.epoch}, ISR {list(view.in_sync)}"
    )
    if view.eligible_leaders:
        head += f", ELR {list(view.eligible_leaders)}"
    parts = []
    for each in view.replicas:
        if each.role == "down":
            parts.append(f"{each.broker}: down")
        elif each.role == "none":
            parts.append(f"{each.broker}: no replica")
        else:
            stable = (
                "" if each.last_stable_offset == each.high_watermark else f" LSO {each.last_stable_offset}"
            )
            parts.append(f"{each.broker}: {each.role} LEO {each.end_offset} HW {each.high_watermark}{stable}")
    return f"{head}\n{' | '.join(parts)}"
