"""The topics of dead letters and retries that follow from a spec, by name."""

from __future__ import annotations

from strandline.client.deadletter.letters import RetryPolicy
from strandline.pipeline.spec.spec import Spec


def dead_letter_topics(spec: Spec) -> dict[str, list[str]]:
    """Returns the source topics of each dead-letter topic; an empty list if all its records come from files."""
    topics: dict[str, list[str]] = {}
    for source in spec.sources:
        for topic in source.topics:
            if not source.is_table and source.can_fail(spec.transforms):
                topics.setdefault(spec.dead_letter_topic(topic), []).append(topic)
    if any(source.files is not None and source.can_fail(spec.transforms) for source in spec.sources):
        assert spec.dead_letters is not None, "the spec was read"
        topics.setdefault(spec.dead_letters, [])
    return topics


def retry_topics(spec: Spec) -> dict[str, str]:
    """Returns the source topic of each retry topic."""
    if spec.retry is None:
        return {}
    return {
        name: topic
        for source in spec.sources
        for topic in source.topics
        if spec.is_retried(source)
        for name in spec.retry.retry_topics(topic)
    }


def retry_delays_ms(policy: RetryPolicy, topics: tuple[str, ...]) -> dict[str, int]:
    """Returns the delay of each retry topic of these source topics, in milliseconds."""
    return {
        name: delay
        for topic in topics
        for name, delay in zip(policy.retry_topics(topic), policy.backoff_ms, strict=True)
    }
