"""Settings of a consumer that stand for objects: assignors and deserializers."""

from __future__ import annotations

from typing import Any

from strandline.client.config.config import ClientConfig
from strandline.client.consumer.group.assignors import Assignor
from strandline.client.consumer.group.sticky import BUILT_IN, JAVA_NAMES
from strandline.client.errors import ConfigError
from strandline.serde.builtin import deserializer_for

_KEY = "partition.assignment.strategy"


def assignors_of(config: ClientConfig) -> tuple[Assignor, ...]:
    """Returns the assignors of partition.assignment.strategy, in order of preference."""
    assignors: list[Assignor] = []
    for strategy in config.objects(_KEY):
        if isinstance(strategy, str):
            name = JAVA_NAMES.get(strategy, strategy)
            if name not in BUILT_IN:
                known = ", ".join(BUILT_IN)
                raise ConfigError(f"{_KEY}: {strategy} is not known (known: {known}, or an object)", key=_KEY)
            assignors.append(BUILT_IN[name])
        elif callable(getattr(strategy, "assign", None)) and getattr(strategy, "name", None):
            assignors.append(strategy)  # type: ignore[arg-type]
        else:
            raise ConfigError(f"{_KEY}: {strategy!r} is no assignor: it needs name and assign()", key=_KEY)
    if not assignors:
        raise ConfigError(f"{_KEY} is empty: name an assignor", key=_KEY)
    names = [assignor.name for assignor in assignors]
    if len(set(names)) < len(names):
        raise ConfigError(f"{_KEY} names one twice: {', '.join(names)}", key=_KEY)
    return tuple(assignors)


def deserializer_of(config: ClientConfig, key: str) -> Any:
    """Returns the deserializer that a setting names: a function of topic and bytes, or a record deserializer. None
    leaves bytes as they are."""
    try:
        return deserializer_for(config.value(key), key)
    except ValueError as error:
        raise ConfigError(str(error), key=key) from error
