"""Settings of one listener: `listener.name.<name>.<key>` if it is set, otherwise `<key>` (KIP-103)."""

from __future__ import annotations

from strandline.config.definition import ConfigValue
from strandline.config.dynamic import DynamicConfigs
from strandline.config.keys.broker import find_key
from strandline.config.values import parse


def listener_prefix(listener: str) -> str:
    return f"listener.name.{listener.lower()}."


class ListenerValues:
    """The present settings of a listener."""

    def __init__(self, configs: DynamicConfigs, listener: str) -> None:
        self._configs = configs
        self.prefix = listener_prefix(listener)

    def value(self, name: str) -> ConfigValue:
        own = self.own_value(name)
        return self._configs.broker_value(name) if own is None else own

    def own_value(self, name: str) -> ConfigValue:
        """Returns the value that is set for this listener alone; None if there is none."""
        return self._own(self.prefix + name)

    def mechanism_value(self, mechanism: str, name: str) -> ConfigValue:
        """Returns the value of a setting that may be set for one SASL mechanism of a listener."""
        own = self._own(self.mechanism_key(mechanism, name))
        return self.value(name) if own is None else own

    def mechanism_key(self, mechanism: str, name: str) -> str:
        return f"{self.prefix}{mechanism.lower()}.{name}"

    def own_mechanism_text(self, mechanism: str, name: str) -> str | None:
        """Returns the text that is set with the prefix of listener and mechanism, and only that."""
        value = self._own(self.mechanism_key(mechanism, name))
        return None if value is None else str(value)

    def _own(self, full: str) -> ConfigValue:
        configs = self._configs
        for source in (configs.own_overrides, configs.shared_overrides, configs.static.originals):
            if full in source:
                key = find_key(full)
                assert key is not None, full
                return parse(key._replace(name=full), source[full])
        return None
