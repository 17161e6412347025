"""The values that the parts of a producer work with, from its configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from strandline.client.config.config import ClientConfig
from strandline.client.errors import ConfigError
from strandline.client.producer.accumulator import AccumulatorSettings
from strandline.client.producer.delivery import RetrySettings
from strandline.client.producer.sender import SenderSettings
from strandline.serde.builtin import serializer_for
from strandline.serde.contract import RecordSerializer
from strandline.wire.compression import CODES
from strandline.wire.record_batch import HEADER_BYTES


def accumulator_settings(config: ClientConfig) -> AccumulatorSettings:
    """Returns the settings of the accumulator, from those of the producer."""
    return AccumulatorSettings(
        batch_bytes=config.int("batch.size") - HEADER_BYTES,
        memory_bytes=config.int("buffer.memory"),
        linger=config.seconds("linger.ms"),
        delivery_timeout=config.seconds("delivery.timeout.ms"),
    )


def serializer_setting(
    config: ClientConfig, setting: str
) -> Callable[[str, Any], bytes | None] | RecordSerializer | None:
    """Returns the serializer that a setting names. None leaves bytes as they are."""
    try:
        return serializer_for(config.value(setting), setting)
    except ValueError as error:
        raise ConfigError(str(error), key=setting) from error


def sender_settings(config: ClientConfig) -> SenderSettings:
    """Returns the settings of the sender, from those of the producer."""
    codec = CODES[config.text("compression.type")]
    name = f"compression.{config.text('compression.type')}.level"
    return SenderSettings(
        acks=int(config.text("acks")),
        request_bytes_max=config.int("max.request.size"),
        in_flight_max=config.int("max.in.flight.requests.per.connection"),
        retry=RetrySettings(
            retries=config.int("retries"),
            backoff_ms=config.int("retry.backoff.ms"),
            backoff_max_ms=config.int("retry.backoff.max.ms"),
        ),
        request_timeout_ms=config.int("request.timeout.ms"),
        codec=codec,
        compression_level=config.int(name) if config.has(name) else None,
    )
