"""The loggers of this broker as resources of type BROKER_LOGGER (KIP-412), for Kafka's tools.

A change of a level takes effect at once, on this broker only, until it stops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.config import ConfigAlteration, DescribedConfig
from strandline.telemetry.events import ROOT, Events

_DYNAMIC_BROKER_LOGGER_CONFIG: Final = 6
_UNKNOWN_TYPE: Final = 0
_SET, _DELETE = 0, 1
# Kafka's levels, and those of Strandline.
_LEVELS: Final = {
    "TRACE": "debug",
    "DEBUG": "debug",
    "INFO": "info",
    "WARN": "warn",
    "ERROR": "error",
    "FATAL": "error",
}


def check_broker(node_id: int, name: str) -> None:
    if name != str(node_id):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"This is broker {node_id}, not {name!r}: send the request to that broker.",
        )


def describe_loggers(events: Events, keys: Sequence[str] | None) -> tuple[DescribedConfig, ...]:
    return tuple(
        DescribedConfig(
            name=name,
            value=level.upper(),
            source=_DYNAMIC_BROKER_LOGGER_CONFIG,
            is_read_only=False,
            is_sensitive=False,
            synonyms=(),
            type_code=_UNKNOWN_TYPE,
            documentation=None,
        )
        for name, level in events.levels.items()
        if not keys or name in keys
    )


def alter_loggers(events: Events, changes: Sequence[ConfigAlteration], *, validate_only: bool) -> None:
    """Makes all of the changes or none; raises KafkaError."""
    for name, operation, value in changes:
        if name not in events.levels:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
        if operation == _DELETE and name == ROOT:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The level of the root logger cannot be removed.")
        if operation == _SET and (value or "").upper() not in _LEVELS:
            levels = ", ".join(_LEVELS)
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{value} is not a log level; there are {levels}.")
        if operation not in (_SET, _DELETE):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "A level can only be set or deleted.")
    for name, operation, value in () if validate_only else changes:
        events.set_level(name, _LEVELS[(value or "").upper()] if operation == _SET else None)
