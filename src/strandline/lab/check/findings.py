"""Findings: the harm that a failure does to records with certain settings, one for each kind of harm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from strandline.lab.base import Stuck
from strandline.lab.check.failures import READS_STOP, WRITES_WAIT, Failure
from strandline.lab.check.settings import CheckedSettings
from strandline.lab.numbers import count_of_numbers
from strandline.lab.outcome import Outcome
from strandline.lab.run import Run, run_simulated
from strandline.lab.scenario import LabScenario

# Kinds, the worst first.
LOSES: Final = "loses"  # acknowledged records are not in the log
DUPLICATES: Final = "duplicates"  # records are in the log twice
REORDERS: Final = "reorders"  # records are in the log after later ones of the same producer
SKIPS: Final = "skips"  # a consumer never sees records that are in the log
READS_ABORTED: Final = "reads aborted"  # a consumer sees records of an aborted transaction
REPEATS: Final = "repeats"  # a consumer sees records again
REFUSES: Final = "refuses"  # the producer is told of an error
FORGETS: Final = "forgets"  # records that were never acknowledged are gone with the producer
BLOCKS: Final = "blocks"  # nothing goes on, not even when all is whole again
WAITS: Final = "waits"  # writes wait
STOPS: Final = "stops"  # a consumer reads nothing
# Those after which data is not what the application was told.
HARMFUL: Final = (LOSES, DUPLICATES, REORDERS, SKIPS, READS_ABORTED)
# Shorter ones are what clients and groups need when all is well.
_NOTICED_SECONDS: Final = {WAITS: 1.0, STOPS: 5.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    kind: str
    records: int = 0
    seconds: float = 0.0
    error: str = ""

    def __str__(self) -> str:
        records = f"{self.records} record{'' if self.records == 1 else 's'}"
        match self.kind:
            case "loses":
                return f"loses {self.records} acknowledged record{'' if self.records == 1 else 's'}"
            case "duplicates":
                return f"writes {records} twice"
            case "reorders":
                return f"writes {records} after later ones"
            case "skips":
                return f"consumers never see {records}"
            case "reads aborted":
                return f"consumers see {records} of the aborted transaction"
            case "repeats":
                return f"consumers see {records} again"
            case "refuses":
                return f"the producer is told {self.error} for {records}"
            case "forgets":
                return f"{records} in the producer's buffer are gone; they were not acknowledged"
            case "blocks":
                return "nothing goes on, not even when all is whole again"
            case "waits":
                return f"writes wait {self.seconds:.1f} s"
            case _:
                return f"a consumer reads nothing for {self.seconds:.1f} s"

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "records": self.records,
            "seconds": round(self.seconds, 1),
            "error": self.error or None,
            "text": str(self),
        }


def play(failure: Failure, settings: CheckedSettings) -> tuple[Finding, ...]:
    """Plays the failure with these settings. Returns the findings, the worst first."""
    return play_through(failure, settings)[0]


def play_through(failure: Failure, settings: CheckedSettings) -> tuple[tuple[Finding, ...], Run | None]:
    """Plays the failure. Returns the findings and the run that had them; the run is None if it did not come to its end.
    A failure that depends on chance is played with several seeds, until records are lost.
    """
    assert failure.seeds > 0
    for seed in range(failure.seeds):
        try:
            run = run_simulated(scenario_of(failure, settings, seed))
        except Stuck:
            return (Finding(kind=BLOCKS),), None
        found = findings(failure, run.outcome, run.figures)
        if any(each.kind == LOSES for each in found):
            break
    return found, run


def scenario_of(failure: Failure, settings: CheckedSettings, seed: int = 0) -> LabScenario:
    producer = settings.played_producer
    if not failure.is_of_transactions:
        producer = {key: value for key, value in producer.items() if not key.startswith("transaction")}
    return LabScenario(
        title=failure.title,
        source="lab check",
        claim="",
        play=failure.play,
        expected=Outcome(),
        name=failure.name,
        brokers=settings.simulated_brokers,
        controllers=failure.controllers,
        replication_factor=settings.replication_factor,
        partitions=failure.partitions,
        racks=settings.racks[: settings.simulated_brokers],
        topic=settings.played_topic,
        cluster={"offsets.topic.num.partitions": "1", **settings.played_cluster},
        producer=producer,
        consumer={"auto.offset.reset": "latest", **settings.played_consumer},
        seed=seed,
    )


def findings(failure: Failure, outcome: Outcome, figures: Mapping[str, float]) -> tuple[Finding, ...]:
    """Returns the findings from the outcome of a run."""
    counted = [
        (LOSES, outcome.lost),
        (DUPLICATES, outcome.duplicated),
        (REORDERS, outcome.reordered),
        (SKIPS, outcome.skipped),
        (READS_ABORTED, outcome.seen_and_lost if failure.is_of_transactions else ""),
        (REPEATS, outcome.seen_twice),
    ]
    found = [Finding(kind=kind, records=count_of_numbers(text)) for kind, text in counted if text]
    if outcome.failed:
        found.append(Finding(kind=REFUSES, records=count_of_numbers(outcome.failed), error=outcome.errors))
    if outcome.untold and not failure.is_of_transactions:
        found.append(Finding(kind=FORGETS, records=count_of_numbers(outcome.untold)))
    for kind, name in ((WAITS, WRITES_WAIT), (STOPS, READS_STOP)):
        if figures.get(name, 0.0) >= _NOTICED_SECONDS[kind]:
            found.append(Finding(kind=kind, seconds=figures[name]))
    return tuple(found)
