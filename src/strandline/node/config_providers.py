"""The providers of settings that Apache Kafka brings along: the environment, files of properties, and directories.

As in Kafka, these are errors: a parameter that makes no sense, a file that cannot be read, a path for the environment.
These have no value: a path outside `allowed.paths`, a path that is not a directory where one is expected, an unknown
name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Final

from strandline.config import BrokerConfig, InvalidConfig, parse_properties
from strandline.config.variables import Lookup, Provider, class_key, fill_in, providers_of

_PACKAGE: Final = "org.apache.kafka.common.config.provider"


def broker_config(settings: Mapping[str, str]) -> BrokerConfig:
    """Returns a node's configuration with the variables in its values filled in; raises InvalidConfig."""
    return BrokerConfig(filled_in(settings))


def filled_in(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns settings with their variables replaced; raises InvalidConfig."""
    lookups = {provider.name: _lookup(provider) for provider in providers_of(settings)}
    return dict(fill_in(settings, lookups))


def _lookup(provider: Provider) -> Lookup:
    make = _PROVIDERS.get(provider.class_name)
    key = class_key(provider.name)
    if make is None:
        raise InvalidConfig(
            key, provider.class_name, "Java classes of one's own cannot be loaded here", ", ".join(_PROVIDERS)
        )
    try:
        return make(provider.parameters)
    except (ValueError, re.error) as error:
        raise InvalidConfig(key.removesuffix("class") + "param", None, str(error)) from error


def _environment(parameters: Mapping[str, str]) -> Lookup:
    allowed = re.compile(parameters.get("allowlist.pattern", ".*"))

    def look_up(path: str, key: str) -> str | None:
        if path:
            raise ValueError("variables of the environment have no path: write ${provider:NAME}")
        return os.environ.get(key) if allowed.fullmatch(key) else None

    return look_up


def _properties_file(parameters: Mapping[str, str]) -> Lookup:
    place = _allowed_places(parameters)

    def look_up(path: str, key: str) -> str | None:
        file = place(path)
        if file is None:
            return None
        found = {entry.key: entry.value for entry in parse_properties(_read(file))}
        return found.get(key)

    return look_up


def _directory(parameters: Mapping[str, str]) -> Lookup:
    place = _allowed_places(parameters)

    def look_up(path: str, key: str) -> str | None:
        directory = place(path)
        # A key is the name of a file in this directory: one with a slash could lead out of the allowed paths.
        if directory is None or os.path.basename(key) != key:
            return None
        file = os.path.join(directory, key)
        return _read(file) if os.path.isfile(file) else None

    return look_up


def _allowed_places(parameters: Mapping[str, str]) -> Callable[[str], str | None]:
    """Returns a function that normalises a path, or returns None if the path is not below one of `allowed.paths`."""
    listed = parameters.get("allowed.paths")
    allowed = [os.path.normpath(path) for path in listed.split(",")] if listed else None
    for path in allowed or ():
        if not os.path.isabs(path):
            raise ValueError(f"{path} in allowed.paths is not absolute")
        if not os.path.exists(path):
            raise ValueError(f"{path} in allowed.paths does not exist")

    def place(path: str) -> str | None:
        if not path or allowed is None:
            return path or None
        path = os.path.normpath(path)
        return (
            path if any(path == each or path.startswith(f"{each.rstrip('/')}/") for each in allowed) else None
        )

    return place


def _read(path: str) -> str:
    """Reads a file as UTF-8, with its line ends as they are."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not in UTF-8") from error


_PROVIDERS: Final[Mapping[str, Callable[[Mapping[str, str]], Lookup]]] = {
    f"{_PACKAGE}.EnvVarConfigProvider": _environment,
    f"{_PACKAGE}.FileConfigProvider": _properties_file,
    f"{_PACKAGE}.DirectoryConfigProvider": _directory,
}
