"""Settings of a consumer that stand for objects: assignors and deserializers."""

from __future__ import annotations

import json
from typing import Any

from strandline.client.assignors import Assignor
from strandline.client.assignors_sticky import BUILT_IN, JAVA_NAMES
from strandline.client.config import ClientConfig
from strandline.client.decode import Deserializer
from strandline.client.errors import ConfigError

_KEY = "partition.assignment.strategy"


def assignors_of(config: ClientConfig) -> tuple[Assignor, ...]:
    found: list[Assignor] = []
    for given in config.objects(_KEY):
        if isinstance(given, str):
            name = JAVA_NAMES.get(given, given)
            if name not in BUILT_IN:
                known = ", ".join(BUILT_IN)
                raise ConfigError(f"{_KEY}: {given} is not known (known: {known}, or an object)", key=_KEY)
            found.append(BUILT_IN[name])
        elif callable(getattr(given, "assign", None)) and getattr(given, "name", None):
            found.append(given)  # type: ignore[arg-type]
        else:
            raise ConfigError(f"{_KEY}: {given!r} is no assignor: it needs name and assign()", key=_KEY)
    if not found:
        raise ConfigError(f"{_KEY} is empty: name an assignor", key=_KEY)
    names = [assignor.name for assignor in found]
    if len(set(names)) < len(names):
        raise ConfigError(f"{_KEY} names one twice: {', '.join(names)}", key=_KEY)
    return tuple(found)


def _text(data: bytes) -> str:
    return data.decode()


def deserializer_of(given: Any) -> Deserializer | None:
    """A function from bytes; None leaves them as they are."""
    if given is None or given in ("bytes", "none"):
        return None
    if given == "str":
        return _text
    if given == "json":
        return json.loads
    method = getattr(given, "deserialize", None)
    if callable(method):
        return method  # type: ignore[no-any-return]
    if callable(given):
        return given  # type: ignore[no-any-return]
    raise ConfigError(f"{given!r} is no deserializer: str, bytes, json, none, a function or an object")
