"""Contexts: named client settings of clusters, in one file of the user's.

The file is $STRANDLINE_CONFIG, or `strandline/contexts.json` in $XDG_CONFIG_HOME or ~/.config. It may hold passwords,
so only its owner can read it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from strandline.cli.failures import not_found, usage

HIDDEN: Final = "(hidden)"
_SECRETS: Final = ("password", "secret", "sasl.jaas.config", "ssl.keystore.key", "token")


def path() -> Path:
    """Returns the file that holds the contexts."""
    given = os.environ.get("STRANDLINE_CONFIG")
    if given:
        return Path(given)
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(home) / "strandline" / "contexts.json"


@dataclass(slots=True, kw_only=True)
class Contexts:
    """The contexts by name, and the one in use."""

    current: str | None = None
    by_name: dict[str, dict[str, str]] = field(default_factory=dict)

    def settings(self, name: str) -> dict[str, str]:
        if name not in self.by_name:
            known = ", ".join(sorted(self.by_name)) or "none; add one with `strandline context add`"
            raise not_found(f"there is no context {name}; there are: {known}")
        return dict(self.by_name[name])

    def current_settings(self) -> dict[str, str]:
        """Returns the settings of the context in use, or none."""
        return dict(self.by_name.get(self.current, {})) if self.current is not None else {}

    def save(self) -> None:
        """Replaces the file atomically. Only its owner can read it."""
        where = path()
        where.parent.mkdir(parents=True, exist_ok=True)
        partial = where.with_name(where.name + ".new")
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump({"current": self.current, "contexts": self.by_name}, file, indent=2)
            file.write("\n")
        os.replace(partial, where)


def load() -> Contexts:
    """Returns the contexts of the user; none if there is no file."""
    where = path()
    try:
        found = json.loads(where.read_text())
        by_name = {
            str(name): {str(key): str(value) for key, value in settings.items()}
            for name, settings in found["contexts"].items()
        }
        return Contexts(current=found.get("current"), by_name=by_name)
    except FileNotFoundError:
        return Contexts()
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise usage(
            f"the contexts in {where} cannot be read: {error}; correct the file or remove it"
        ) from error


def is_secret(key: str) -> bool:
    """True for a setting whose value must not be shown."""
    return any(part in key for part in _SECRETS)


def without_secrets(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings with the values of secrets replaced."""
    return {key: HIDDEN if is_secret(key) else value for key, value in settings.items()}
