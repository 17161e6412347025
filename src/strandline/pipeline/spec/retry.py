"""Reads `retry` of a spec: the number of attempts and the delays before them, for records that a rule has refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from strandline.base.topics import invalid_topic_name
from strandline.client.deadletter.letters import RetryPolicy
from strandline.pipeline.spec.intervals import interval_ms
from strandline.pipeline.spec.spec import Source, Transform
from strandline.pipeline.spec.yaml_lines import Section

_ATTEMPTS_MAX: Final = 10  # each attempt is one more topic for each source topic


def read_retry(
    root: Section, name: str | None, sources: Sequence[Source], transforms: Sequence[Transform]
) -> RetryPolicy | None:
    """Returns the retry policy of a spec; None without one. Reports rules and policies that do not fit together."""
    finishes = [*(source.finish for source in sources), *(transform.finish for transform in transforms)]
    rules = [rule for finish in finishes for rule in finish.rules if rule.is_retried]
    section = root.section("retry")
    if section is None:
        for rule in rules:
            root.mistakes.add(
                rule.check.line,
                f"rule {rule.name} has retry: true, and the spec has no delays: add retry: "
                "{backoff: [10 seconds, 5 minutes]}",
            )
        return None
    texts = section.texts("backoff")
    section.done()
    delays = []
    for text in texts:
        delay = interval_ms(text)
        if delay is not None:
            delays.append(delay)
        else:
            section.mistakes.add(text.line, f"retry.backoff must be like 10 seconds, not {text!r}")
    if not texts or len(texts) > _ATTEMPTS_MAX:
        section.wrong("backoff", f"must have 1 to {_ATTEMPTS_MAX} delays, one for each further attempt")
    if not rules:
        root.wrong("retry", "has no rule that uses it: set retry: true in a rule")
    for source in sources:
        if source.files is not None and any(rule.is_retried for rule in source.finish.rules):
            root.mistakes.add(source.line, f"sources.{source.name} reads files, which cannot be tried again")
    policy = RetryPolicy(group=str(name), backoff_ms=tuple(delays))
    for topic in [topic for source in sources for topic in source.topics]:
        for retried in policy.retry_topics(topic)[-1:]:
            why = invalid_topic_name(retried)
            if why is not None:
                root.wrong("pipeline", f"is part of the names of retry topics, and {why}")
    return policy
