"""The outcome of a scenario: the fate of each record that the producers sent, and who leads in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from strandline.lab.numbers import as_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Records are named by the numbers that producers gave them, in the form of `numbers.as_text`."""

    acknowledged: str = ""
    failed: str = ""  # the producer was told of an error
    untold: str = ""  # sent, and the producer was told nothing about it
    lost: str = ""  # acknowledged, and not in the log
    duplicated: str = ""  # in the log more than once
    reordered: str = ""  # after a record of the same producer and partition that was sent later
    written_though_failed: str = ""  # in the log, though the producer was told of an error
    seen: str = ""  # by consumers
    seen_twice: str = ""
    seen_and_lost: str = ""  # by consumers, and not in the log
    skipped: str = ""  # in the log, and seen by none of the consumers that there were
    rebalances: int = 0  # after the first assignment of each consumer
    errors: str = ""  # the producer was told of
    consumer_errors: str = ""  # at which a consumer stopped reading
    leader: int = -1
    leader_epoch: int = -1

    def differences(self, other: Outcome) -> list[str]:
        """Returns a line for each difference from another outcome."""
        found, expected = self.as_json(), other.as_json()
        return [
            f"{name}: {_shown(expected[name])} was expected, {_shown(found[name])} was found"
            for name in found
            if found[name] != expected[name]
        ]

    def as_json(self) -> dict[str, str | int]:
        return {each.name: getattr(self, each.name) for each in fields(self)}


def judge(
    *,
    acknowledged: Iterable[int],
    failed: Mapping[int, str],
    untold: Iterable[int],
    logs: list[list[int]],
    seen: list[int] | None,
    rebalances: int,
    senders: Mapping[int, str],
    leader: tuple[int, int],
    consumer_errors: Iterable[str] = (),
) -> Outcome:
    """Returns the outcome, from the results that producers got and the records of each log in their order.

    `failed` has the errors by record. `seen` has all records that consumers read; None if there were no consumers.
    `senders` says which producer has sent a record.
    """
    written = Counter(number for log in logs for number in log)
    acknowledged, there, read = set(acknowledged), set(written), Counter(seen or ())
    return Outcome(
        acknowledged=as_text(acknowledged),
        failed=as_text(failed),
        untold=as_text(untold),
        lost=as_text(acknowledged - there),
        duplicated=as_text(number for number, count in written.items() if count > 1),
        reordered=as_text(number for log in logs for number in _reordered(log, senders)),
        written_though_failed=as_text(there & set(failed)),
        seen=as_text(read),
        seen_twice=as_text(number for number, count in read.items() if count > 1),
        seen_and_lost=as_text(set(read) - there),
        skipped=as_text(there - set(read)) if seen is not None else "",
        rebalances=rebalances,
        errors=", ".join(sorted(set(failed.values()))),
        consumer_errors=", ".join(sorted(set(consumer_errors))),
        leader=leader[0],
        leader_epoch=leader[1],
    )


def _reordered(log: list[int], senders: Mapping[int, str]) -> list[int]:
    highest: dict[str, int] = {}
    late, known = [], set()
    for number in log:
        sender = senders.get(number, "")
        if number < highest.get(sender, -1) and number not in known:
            late.append(number)
        known.add(number)
        highest[sender] = max(number, highest.get(sender, -1))
    return late


def _shown(value: object) -> str:
    return str(value) if value != "" else "none"
