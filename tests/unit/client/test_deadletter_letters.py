"""The way of a record that failed, as plain values."""

from __future__ import annotations

from strandline.client.consumer.record_decoder import ConsumerRecord
from strandline.client.deadletter.letters import (
    ERROR_BYTES_MAX,
    RetryPolicy,
    dead_letter_topic,
    origin_of,
    redriven,
)

POLICY = RetryPolicy(group="billing", backoff_ms=(100, 2000), fatal=(KeyError,))


def record(*headers: tuple[bytes, bytes | None], topic: str = "orders") -> ConsumerRecord:
    return ConsumerRecord(topic, 3, 42, 1_700_000_000_000, 0, b"key", b"value", headers, 5)


def failed(times: int, *headers: tuple[bytes, bytes | None]) -> ConsumerRecord:
    """Returns the record as it comes back after so many failures."""
    found = record(*headers)
    for _ in range(times):
        out = POLICY.outcome(found, origin_of(found), RuntimeError("no"), now_ms=1000)
        found = ConsumerRecord(out.topic, 0, 7, 9, 0, out.key, out.value, tuple(out.headers), 0)  # type: ignore[arg-type]
    return found


def test_each_failure_goes_one_topic_further_and_the_last_to_the_dead_letters() -> None:
    assert [failed(times).topic for times in (1, 2, 3)] == [
        "orders.billing.retry.1",
        "orders.billing.retry.2",
        "orders.dlq",
    ]
    assert POLICY.retry_topics("orders") == ["orders.billing.retry.1", "orders.billing.retry.2"]


def test_a_retried_record_knows_where_it_was_first_and_when_it_is_due() -> None:
    origin = origin_of(failed(2))
    assert (origin.topic, origin.partition, origin.offset) == ("orders", 3, 42)
    assert origin.timestamp_ms == 1_700_000_000_000
    assert (origin.attempt, origin.retry_at_ms) == (2, 3000)
    assert "dlq.retry_at" not in dict(failed(3).headers), "nobody retries a dead letter"


def test_a_fatal_error_is_not_tried_again() -> None:
    first = record()
    assert POLICY.outcome(first, origin_of(first), KeyError("x"), now_ms=0).topic == "orders.dlq"
    assert (
        POLICY.outcome(first, origin_of(first), ValueError(), now_ms=0, is_fatal=True).topic == "orders.dlq"
    )


def test_headers_of_the_application_come_back_as_they_were() -> None:
    mine = (("trace", b"1"), ("trace", None), ("\udcff", b"2"))
    back = redriven(failed(3, *mine))
    assert back.topic == "orders"
    assert tuple(back.headers) == (*mine, ("dlq.redriven", b"1"))
    assert redriven(failed(3), "elsewhere").topic == "elsewhere"


def test_how_often_a_record_was_put_back_is_counted_through_the_next_death() -> None:
    once = tuple(redriven(failed(3)).headers)
    assert dict(redriven(failed(3, *once)).headers)["dlq.redriven"] == b"2"  # type: ignore[arg-type]


def test_a_long_error_is_cut_between_characters() -> None:
    first = record()
    out = POLICY.outcome(first, origin_of(first), RuntimeError("é" * 5000), now_ms=0)
    text = dict(out.headers)["dlq.error"]
    assert text is not None
    assert ERROR_BYTES_MAX - 2 <= len(text) <= ERROR_BYTES_MAX
    assert set(text.decode()) == {"é"}


def test_headers_that_say_nonsense_do_no_harm() -> None:
    odd = record(("dlq.original_topic", b"orders"), ("dlq.attempt", b"many"), ("dlq.retry_at", None))
    origin = origin_of(odd)
    assert (origin.attempt, origin.retry_at_ms, origin.offset) == (0, 0, -1)
    assert dead_letter_topic("orders") == "orders.dlq"
