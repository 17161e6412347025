"""The reference page of the clients' settings, generated from the keys so that the two agree."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.client.config.admin_keys import ADMIN_KEYS
from strandline.client.config.consumer_keys import CONSUMER_KEYS
from strandline.client.config.producer_keys import PRODUCER_KEYS
from strandline.client.config.shared_keys import COMMON_KEYS
from strandline.config.definition import ConfigKey
from strandline.config.reference import default_text, effect_text, shown, table

_HEAD = """# Client configuration reference

<!-- Made by `make docs` from src/strandline/client/config/*_keys.py; edits here are lost. -->

Settings of `strandline.client` and `strandline.client.sync`, by Kafka's names: as a mapping
(`Producer({"linger.ms": 10})`), as keywords with underscores (`Producer(linger_ms=10)`), or both; the keyword wins. A
value may be text or the Python value that it stands for. Unknown names, and settings that contradict each other, are a
`ConfigError` that names the fix. *Effect today*: **active** keys do what their text says; *accepted* ones are checked,
and nothing depends on them yet.
"""

_COLUMNS = ("Key", "Type", "Default", "Allowed", "Importance", "Effect today", "Meaning")


def render_client_reference() -> str:
    """Returns the text of the whole page."""
    common = {key.name for key in COMMON_KEYS}
    parts = [_HEAD, "## Every client\n", table(_COLUMNS, _rows(COMMON_KEYS))]
    for title, keys in (("Producer", PRODUCER_KEYS), ("Consumer", CONSUMER_KEYS), ("Admin", ADMIN_KEYS)):
        own = [key for key in keys if key.name not in common]
        parts += [f"## {title}\n", table(_COLUMNS, _rows(own))]
    return "\n".join(parts)


def _rows(keys: Iterable[ConfigKey]) -> list[tuple[str, ...]]:
    return [
        (
            f"`{key.name}`",
            key.type.lower(),
            default_text(key),
            key.allowed(),
            key.importance.lower(),
            effect_text(key),
            key.doc,
        )
        for key in shown(keys)
    ]
