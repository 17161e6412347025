"""Events of a running pipeline as lines of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def line_of(event: Mapping[str, Any]) -> str:
    """Returns an event as text."""
    match event["event"]:
        case "starting":
            return f"pipeline {event['pipeline']} starts"
        case "topic created":
            return f"topic {event['topic']} created"
        case "started":
            return f"pipeline {event['pipeline']} runs: {', '.join(event['queries'])}"
        case "batch":
            return _batch(event)
        case "restarted":
            return f"{event['query']} begins again at its checkpoint: {event['error']}"
        case "stopping":
            return "stopping after the batches in progress"
        case kind:
            return "\n".join([f"pipeline {event['pipeline']} {kind}", *summary(event["queries"])])


def _batch(event: Mapping[str, Any]) -> str:
    parts = [f"{sum(event['records'].values()):,} in"]
    written = event["written"]
    if written:
        parts.append(f"{sum(written.values()):,} out ({_counts(written)})")
    if event["retried"]:
        parts.append(f"{sum(event['retried'].values()):,} to try again")
    if event["dead_letters"]:
        parts.append(f"{sum(event['dead_letters'].values()):,} dead letters")
    parts.append(f"{event['seconds']:.1f} s")
    parts.append(f"{event['records_per_second']:,.0f}/s")
    if event["lag"] is not None:
        parts.append(f"{event['lag']:,} to go")
    return f"{event['query']} batch {event['batch']}: {', '.join(parts)}"


def summary(queries: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Returns the totals of each query since the run began, as lines."""
    lines = []
    for name, totals in queries.items():
        lines.append(f"  {name}: {totals['batches']} batches, {sum(totals['records'].values()):,} records in")
        kinds = (
            *(("records", "from"), ("written", "to topic")),
            *(("retried", "to try again in"), ("dead_letters", "dead letters to")),
        )
        for key, words in kinds:
            lines += [f"    {count:>10,} {words} {place}" for place, count in sorted(totals[key].items())]
    return lines


def _counts(by_topic: Mapping[str, int]) -> str:
    return ", ".join(f"{topic} {count:,}" for topic, count in sorted(by_topic.items()))
