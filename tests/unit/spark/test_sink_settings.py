"""Settings that the exactly-once sink must decide itself are refused; before, they were overridden without a word."""

from __future__ import annotations

from typing import Any

import pytest

from strandline.client.errors import ConfigError
from strandline.spark.options import OptionError
from strandline.spark.sink.exactly_once import ExactlyOnceSink, write_atomically


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"transactional.id": "mine"}, "transactional.id cannot be set in settings: .* the argument name"),
        ({"transaction.timeout.ms": "5"}, "use the argument transaction_timeout_ms"),
        ({"enable.idempotence": False}, "a transaction needs enable.idempotence=true, and not False"),
        ({"acks": 1}, "a transaction needs acks=all, and not 1"),
        ({"bootstrap.servers": "other:1"}, "the argument bootstrap_servers, which is h:1"),
        ({"key.serializer": "json"}, "keys are written as they are"),
        ({"partitioner.class": "x"}, "rows are partitioned by their keys"),
    ],
)
def test_a_setting_of_the_sinks_own_is_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(OptionError, match=text):
        ExactlyOnceSink("h:1", settings=settings)
    nothing: Any = None
    with pytest.raises(OptionError, match=text):
        write_atomically(nothing, "h:1", name="job", settings=settings)


@pytest.mark.parametrize("settings", [{"retries": 0}, {"linger": 5}, {"delivery.timeout.ms": 1}])
def test_settings_that_contradict_a_transaction_are_refused_before_a_batch(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(settings))):
        ExactlyOnceSink("h:1", settings=settings)


def test_settings_that_agree_with_a_transaction_are_allowed() -> None:
    ExactlyOnceSink(
        "h:1",
        settings={"acks": "all", "enable.idempotence": "True", "bootstrap.servers": "h:1", "linger.ms": "5"},
    )
