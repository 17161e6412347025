"""Variables inside values, such as `${env:NAME}` and `${file:/path:key}` (KIP-297, KIP-421).

1. `config.providers` names providers; `config.providers.NAME.class` is the class of each, and keys that begin with
   `config.providers.NAME.param.` are its parameters.
2. A variable is `${provider:key}` or `${provider:path:key}`, anywhere in a value. Variables in a replacement are not
   replaced.
3. A variable without a provider, or whose provider has no such value, stays as it is written, as in Apache Kafka.
   There it does so silently; here `BrokerConfig` warns.

The lookup of values is in `strandline.node.config_providers`, which reads files and the environment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from strandline.config.values import InvalidConfig

PROVIDERS: Final = "config.providers"
# As in Kafka's ConfigTransformer: only a key may have a colon.
_VARIABLE: Final = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")

Lookup = Callable[[str, str], str | None]
"""Returns the value at a path and a key, or None; raises ValueError with the reason if it cannot be looked up."""


class Provider(NamedTuple):
    name: str
    class_name: str
    parameters: Mapping[str, str]


def class_key(name: str) -> str:
    return f"{PROVIDERS}.{name}.class"


def providers_of(settings: Mapping[str, str]) -> Iterator[Provider]:
    """Yields the providers that are named and have a class."""
    for name in _names(settings):
        if class_key(name) in settings:
            prefix = f"{PROVIDERS}.{name}.param."
            parameters = {
                key.removeprefix(prefix): value for key, value in settings.items() if key.startswith(prefix)
            }
            yield Provider(name, settings[class_key(name)], parameters)


def fill_in(settings: Mapping[str, str], lookups: Mapping[str, Lookup]) -> dict[str, str]:
    """Returns the settings with their variables replaced; `lookups` is by name of provider. Raises InvalidConfig."""

    def filled(key: str, text: str) -> str:
        def value_of(variable: re.Match[str]) -> str:
            provider, path, name = variable.groups(default="")
            if provider not in lookups:
                return variable[0]
            try:
                value = lookups[provider](path, name)
            except ValueError as error:
                raise InvalidConfig(key, variable[0], str(error)) from error
            return variable[0] if value is None else value

        return _VARIABLE.sub(value_of, text)

    return {key: filled(key, text) for key, text in settings.items()}


def advice_on_variables(text: str, settings: Mapping[str, str]) -> Iterator[str]:
    """Yields a note, with the reason, for each variable in a value that was not replaced."""
    for variable in _VARIABLE.finditer(text):
        provider = variable[1]
        if provider not in _names(settings):
            reason = f"{PROVIDERS} does not name {provider}"
        elif class_key(provider) not in settings:
            reason = f"{class_key(provider)} is not set"
        else:
            reason = "its provider has no such value, or is not allowed to read it"
        yield f"{variable[0]} is taken as it is written: {reason}"


def _names(settings: Mapping[str, str]) -> list[str]:
    return [name.strip() for name in settings.get(PROVIDERS, "").split(",") if name.strip()]
