"""Settings by Kafka's names, with Python's values."""

from __future__ import annotations

from typing import Any

import pytest

from strandline.client.config.admin_keys import ADMIN_KEYS
from strandline.client.config.config import ClientConfig
from strandline.client.config.consumer_keys import CONSUMER_KEYS
from strandline.client.config.producer_keys import PRODUCER_KEYS
from strandline.client.errors import ConfigError

AT = {"bootstrap.servers": "a:1,[::1]:2"}


def test_a_mapping_and_keywords_are_one_configuration_and_the_keyword_wins() -> None:
    config = ClientConfig.producer(
        {**AT, "linger.ms": "7", "batch.size": 5}, batch_size=6, enable_idempotence="TRUE"
    )
    assert config.bootstrap == (("a", 1), ("::1", 2))
    assert (config.int("linger.ms"), config.int("batch.size")) == (7, 6)
    assert config.seconds("linger.ms") == 0.007
    assert config.flag("enable.idempotence") is True


def test_objects_stand_where_java_names_classes() -> None:
    interceptor = object()
    config = ClientConfig.producer(AT, value_serializer=len, interceptor_classes=[interceptor])
    assert config.value("value.serializer") is len
    assert config.objects("interceptor.classes") == (interceptor,)
    assert ClientConfig.producer(bootstrap_servers=["a:1", "b:2"]).bootstrap == (("a", 1), ("b", 2))


@pytest.mark.parametrize(
    ("settings", "is_idempotent"),
    [
        ({}, True),
        ({"acks": 1}, False),
        ({"acks": "0"}, False),
        ({"retries": 0}, False),
        ({"max.in.flight.requests.per.connection": 6}, False),
        ({"acks": "all", "max.in.flight.requests.per.connection": 5}, True),
    ],
)
def test_as_in_java_what_contradicts_idempotence_switches_its_default_off(
    settings: dict[str, Any], is_idempotent: bool
) -> None:
    assert ClientConfig.producer({**AT, **settings}).flag("enable.idempotence") is is_idempotent


def test_a_delivery_timeout_that_nobody_set_grows_with_what_it_must_contain() -> None:
    config = ClientConfig.producer(AT, request_timeout_ms=200_000, linger_ms=1000)
    assert config.int("delivery.timeout.ms") == 201_000


@pytest.mark.parametrize(
    ("make", "settings", "words"),
    [
        (ClientConfig.consumer, {"group.idd": "g"}, "group.id"),
        (ClientConfig.consumer, {"heartbeat.interval.ms": 50_000}, "session.timeout.ms"),
        (ClientConfig.consumer, {"enable.auto.commit": True}, "group.id"),
        (ClientConfig.admin, {"acks": 1}, "no setting"),
        (ClientConfig.admin, {"request.timeout.ms": 1.5}, "request.timeout.ms"),
        (ClientConfig.admin, {"bootstrap.servers": ""}, "bootstrap.servers"),
        (ClientConfig.admin, {"bootstrap.servers": "a:0"}, "host:port"),
        (ClientConfig.admin, {"bootstrap.servers": "a:70000"}, "host:port"),
    ],
)
def test_slips_are_errors_that_help(make: Any, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make({**AT, **settings})
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is missing"):
        make({})


@pytest.mark.parametrize(
    "keys", [PRODUCER_KEYS, CONSUMER_KEYS, ADMIN_KEYS], ids=["producer", "consumer", "admin"]
)
def test_every_setting_is_declared_once_and_documented(keys: tuple[Any, ...]) -> None:
    names = [key.name for key in keys]
    assert len(set(names)) == len(names)
    assert all(len(key.doc) > 10 for key in keys)
