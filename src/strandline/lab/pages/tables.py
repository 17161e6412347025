"""The tables of the documents about guarantees: each cell with what it says, and how to see whether it is so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from strandline.config.presets import REPLICATION_FACTOR
from strandline.lab.check.settings import MIN_ISR, CheckedSettings
from strandline.lab.pages.played import RowResults


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    said: str
    holds: Callable[[RowResults], bool] | None = None  # None: an opinion, which cannot be played
    found: Callable[[RowResults], str] = lambda results: ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    name: str
    settings: CheckedSettings
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GuaranteeTable:
    title: str
    source: str
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]


# The plays of each row. Followers need a second replica; the consumer has no part in these tables.
ROW_PLAYS: Final = (
    *("leader-crashes", "leader-falls-silent", "acknowledgement-is-lost", "follower-crashes", "disk-is-lost"),
    *("leader-is-cut-off", "in-sync-replicas-crash", "last-copy-is-lost", "power-fails", "copies", "latency"),
)


def _settings(acks: str, min_isr: int, factor: int = 3, *, idempotent: bool = False) -> CheckedSettings:
    return CheckedSettings(
        producer={"acks": acks, "enable.idempotence": str(idempotent).lower()},
        topic={REPLICATION_FACTOR: str(factor), MIN_ISR: str(min_isr)},
    )


NOT_WAITED_FOR: Final = _settings("0", 1)
BY_LEADER: Final = _settings("1", 1)
ALL_MIN_1: Final = _settings("all", 1)
ALL_MIN_2: Final = _settings("all", 2)
ALL_MIN_2_OF_2: Final = _settings("all", 2, 2)
ALL_MIN_3: Final = _settings("all", 3)
IDEMPOTENT: Final = _settings("all", 2, idempotent=True)


def named(failures: list[str]) -> str:
    return ", ".join(f"`{each}`" for each in failures)


def _losses(results: RowResults) -> str:
    single = [each.name for each in results.losing]
    together = [each.name for each in results.losing_together]
    if single:
        return f"a single failure loses acknowledged records: {named(single)}"
    if together:
        return f"only several failures at once lose acknowledged records: {named(together)}"
    return "no failure that was played loses acknowledged records"


def _duplicates(results: RowResults) -> str:
    twice = [each.name for each in results.duplicating]
    return f"records are written twice: {named(twice)}" if twice else "nothing is written twice"


def _soon(results: RowResults) -> str:
    return f"acknowledged after {results.latency_ms:.1f} ms in the simulated network"


def _copies(results: RowResults) -> str:
    replicas = "1 replica" if results.copies == 1 else f"{results.copies} replicas"
    return f"a record is on {replicas} when it is acknowledged"


def _behaviour(results: RowResults) -> str:
    away = results.texts("follower-crashes")
    writes = "; ".join(away) if away else "writes go on"
    return f"{_copies(results)}; {_losses(results)}; while a follower is away, {writes}"


def _loss(said: str, *, by_one: bool) -> Cell:
    return Cell(said=said, holds=lambda results: bool(results.losing) == by_one, found=_losses)


def _twice(said: str, *, happens: bool) -> Cell:
    return Cell(said=said, holds=lambda results: bool(results.duplicating) == happens, found=_duplicates)


def _latency(said: str, low_ms: float, high_ms: float) -> Cell:
    """With acks=0 the time is that of linger.ms (5 ms). A request to the leader, and one from a follower, take a few ms
    more each."""
    return Cell(said=said, holds=lambda results: low_ms <= results.latency_ms < high_ms, found=_soon)


def _copied(said: str, copies: int) -> Cell:
    return Cell(said=said, holds=lambda results: results.copies == copies, found=_copies)


PRODUCER: Final = GuaranteeTable(
    title="Producer guarantees",
    source="Leader failure: Producer Guarantees Summary",
    columns=("Configuration", "Data loss risk", "Duplicates risk", "Latency", "Use case"),
    rows=(
        TableRow(
            name="acks=0",
            settings=NOT_WAITED_FOR,
            cells=(
                _loss("High", by_one=True),
                _twice("None", happens=False),
                _latency("Lowest", 0, 7),
                Cell(said="Metrics, logs"),
            ),
        ),
        TableRow(
            name="acks=1",
            settings=BY_LEADER,
            cells=(
                _loss("Medium", by_one=True),
                _twice("Possible", happens=True),
                _latency("Low", 7, 14),
                Cell(said="Balanced"),
            ),
        ),
        TableRow(
            name="acks=all, min.isr=1",
            settings=ALL_MIN_1,
            cells=(
                _loss("Medium", by_one=True),
                _twice("Possible", happens=True),
                _latency("Medium", 14, 20),
                Cell(said="Don't use"),
            ),
        ),
        TableRow(
            name="acks=all, min.isr=2",
            settings=ALL_MIN_2,
            cells=(
                _loss("Low", by_one=False),
                _twice("Possible", happens=True),
                _latency("Higher", 20, 1000),
                Cell(said="Critical data"),
            ),
        ),
        TableRow(
            name="acks=all, min.isr=2, idempotent",
            settings=IDEMPOTENT,
            cells=(
                _loss("Lowest", by_one=False),
                _twice("None", happens=False),
                _latency("Higher", 20, 1000),
                Cell(said="Best practice"),
            ),
        ),
    ),
)

DURABILITY: Final = GuaranteeTable(
    title="Durability guarantees",
    source="Architecture: Durability Guarantees Summary",
    columns=("Configuration", "Guarantee", "Data loss risk"),
    rows=(
        TableRow(
            name="acks=0",
            settings=NOT_WAITED_FOR,
            cells=(
                _copied("None", 0),
                Cell(
                    said="Any failure loses data",
                    holds=lambda results: (
                        {"leader-crashes", "disk-is-lost", "follower-crashes"}
                        <= {each.name for each in results.losing}
                    ),
                    found=_losses,
                ),
            ),
        ),
        TableRow(
            name="acks=1",
            settings=BY_LEADER,
            cells=(
                _copied("Leader persisted", 1),
                Cell(
                    said="Leader failure before replication",
                    holds=lambda results: "leader-crashes" in {each.name for each in results.losing},
                    found=_losses,
                ),
            ),
        ),
        TableRow(
            name="acks=all, min.isr=1",
            settings=ALL_MIN_1,
            cells=(
                _copied("One replica", 1),
                Cell(
                    said="All replicas fail simultaneously",
                    holds=lambda results: [each.name for each in results.losing_together] == ["power-fails"],
                    found=_losses,
                ),
            ),
        ),
        TableRow(
            name="acks=all, min.isr=2",
            settings=ALL_MIN_2_OF_2,
            cells=(
                _copied("Two replicas", 2),
                Cell(
                    said="Two replicas fail simultaneously",
                    holds=lambda results: not results.losing and bool(results.losing_together),
                    found=_losses,
                ),
            ),
        ),
        TableRow(
            name="acks=all, min.isr=2, RF=3",
            settings=IDEMPOTENT,
            cells=(
                Cell(
                    said="Strong",
                    holds=lambda results: results.copies >= 2 and not results.losing,
                    found=_copies,
                ),
                Cell(
                    said="Extremely unlikely (2 of 3 fail)",
                    holds=lambda results: (
                        not results.losing
                        and "in-sync-replicas-crash" in {each.name for each in results.losing_together}
                    ),
                    found=_losses,
                ),
            ),
        ),
    ),
)

ACKS_BY_MIN_ISR: Final = GuaranteeTable(
    title="acks and min.insync.replicas",
    source="Replication: acks + min.insync.replicas Interaction Matrix",
    columns=("acks, min.insync.replicas, replication factor", "Behavior"),
    rows=(
        TableRow(
            name="0, any, any",
            settings=NOT_WAITED_FOR,
            cells=(
                Cell(
                    said=(
                        "Producer does not wait for ACK. Max throughput, no durability guarantee. Fire-and-forget."
                    ),
                    holds=lambda results: results.copies == 0 and bool(results.losing),
                    found=_behaviour,
                ),
            ),
        ),
        TableRow(
            name="1, any, any",
            settings=BY_LEADER,
            cells=(
                Cell(
                    said="Producer waits for leader ACK only. Data loss if leader dies before followers replicate.",
                    holds=lambda results: (
                        results.copies == 1 and "leader-crashes" in {each.name for each in results.losing}
                    ),
                    found=_behaviour,
                ),
            ),
        ),
        TableRow(
            name="all, 1, 3",
            settings=ALL_MIN_1,
            cells=(
                Cell(
                    said=(
                        "Producer waits for all ISR. But ISR can shrink to leader only -- then acks=all = acks=1. "
                        "False sense of safety."
                    ),
                    holds=lambda results: results.copies == 1 and bool(results.losing),
                    found=_behaviour,
                ),
            ),
        ),
        TableRow(
            name="all, 2, 3",
            settings=IDEMPOTENT,
            cells=(
                Cell(
                    said=(
                        "Producer waits for all ISR. ISR must have >= 2 members or writes are rejected with "
                        "NotEnoughReplicasException. Recommended production setting."
                    ),
                    holds=lambda results: results.copies >= 2 and not results.losing,
                    found=_behaviour,
                ),
            ),
        ),
        TableRow(
            name="all, 3, 3",
            settings=ALL_MIN_3,
            cells=(
                Cell(
                    said=(
                        "Producer waits for all 3 replicas. Any single broker failure blocks writes. Too strict for "
                        "most use cases."
                    ),
                    holds=lambda results: "follower-crashes" in {each.name for each in results.refusing},
                    found=_behaviour,
                ),
            ),
        ),
    ),
)

TABLES: Final = (PRODUCER, DURABILITY, ACKS_BY_MIN_ISR)
