"""The configuration with which a node starts: typed, checked and immutable.

`BrokerConfig.from_strings` takes the settings of server.properties or a command line. It refuses the settings that
Apache Kafka refuses, with the key, the value and the allowed values. Settings that only look wrong cause a warning:
above all an unknown key, which is likely a typing error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from strandline.config import startup_checks
from strandline.config.keys.broker import BROKER_KEYS, DYNAMIC_ONLY_KEYS, find_key
from strandline.config.keys.topic import SYNONYMS, TOPIC_KEYS
from strandline.config.parsed_config import ParsedConfig
from strandline.config.typed_values import nearest
from strandline.config.variables import advice_on_variables

# Keys that the authorizer reads itself.
_PLUGIN_KEYS = ("super.users", "allow.everyone.if.no.acl.found")
# The prefixes of keys that plug-ins read themselves, and whose names are therefore unknown here.
_PLUGIN_PREFIXES = ("config.providers.",)
_PLUGIN_PREFIX_KEYS = ("remote.log.storage.manager.impl.prefix", "remote.log.metadata.manager.impl.prefix")


class ConfigWarning(NamedTuple):
    """A setting that a person should look at, and with which the node starts all the same."""

    key: str
    message: str


class BrokerConfig(ParsedConfig):
    """The settings of a node, which are checked against each other and never change."""

    __slots__ = ("warnings",)

    warnings: tuple[ConfigWarning, ...]

    def __init__(self, originals: Mapping[str, str]) -> None:
        super().__init__(originals)
        warnings = [warning for name in self.originals if (warning := self._warning_of(name)) is not None]
        for name, text in self.originals.items():
            warnings.extend(
                ConfigWarning(name, advice) for advice in advice_on_variables(text, self.originals)
            )
        warnings.extend(ConfigWarning(*found) for found in startup_checks.run(self))
        self.warnings = tuple(warnings)

    def __setattr__(self, name: str, value: object) -> None:
        assert not hasattr(self, "warnings"), "the configuration of a node does not change once it is read"
        object.__setattr__(self, name, value)

    @classmethod
    def from_strings(cls, originals: Mapping[str, str]) -> BrokerConfig:
        """Returns the checked configuration of a node; raises InvalidConfig."""
        return cls(originals)

    def _warning_of(self, name: str) -> ConfigWarning | None:
        """Returns a warning if this is not a key of a broker, nor a broker's key for one listener."""
        if (
            name in BROKER_KEYS
            or name in _PLUGIN_KEYS
            or (find_key(name) is not None and name not in DYNAMIC_ONLY_KEYS)
        ):
            return None
        prefixes = _PLUGIN_PREFIXES + tuple(self.text(prefix) for prefix in _PLUGIN_PREFIX_KEYS)
        return None if name.startswith(prefixes) else ConfigWarning(name, _advice(name))


def _advice(name: str) -> str:
    if name in DYNAMIC_ONLY_KEYS:
        return f"{name} can only be set while the broker runs, with kafka-configs; it is ignored here"
    if name in TOPIC_KEYS:
        synonyms = SYNONYMS.get(name)
        default = f"; its default for all topics is {synonyms[0].name}" if synonyms else ""
        return f"{name} is a key of topics, not of brokers{default}"
    return f"Strandline has no setting {name}{nearest(name, BROKER_KEYS)}"
