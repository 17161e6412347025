"""The configuration reference as Markdown, which is made from the keys."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.config.definition import ConfigKey, Required
from strandline.config.keys.broker import DYNAMIC_ONLY_KEYS, THEMES
from strandline.config.keys.client_metrics import CLIENT_METRICS_KEYS
from strandline.config.keys.group import GROUP_KEYS, broker_key
from strandline.config.keys.topic import SYNONYMS, TOPIC_KEYS
from strandline.config.values import render

_HEAD = """# Configuration reference

<!-- Made by `make docs` from src/strandline/config; edits here are lost. -->

Names, types, defaults and bounds are those of Apache Kafka 4.3.1. *Effect today* says how far Strandline has
come: **active** keys do what their text says, *accepted* ones are parsed, checked and shown, and nothing depends
on them yet. *Dynamic* says whether a key can change while a broker runs: for one broker, or for the whole cluster.
"""

_BROKER_COLUMNS = ("Key", "Type", "Default", "Allowed", "Dynamic", "Effect today", "Meaning")
_TOPIC_COLUMNS = ("Key", "Type", "Default", "Allowed", "Broker's default in", "Effect today", "Meaning")


def render_reference() -> str:
    """Returns the text of the whole page."""
    parts = [_HEAD, "## Topic keys\n", table(_TOPIC_COLUMNS, map(_topic_row, shown(TOPIC_KEYS.values())))]
    parts += ["## Group keys\n", table(_TOPIC_COLUMNS, map(_group_row, shown(GROUP_KEYS.values())))]
    rows = map(_topic_row, CLIENT_METRICS_KEYS.values())
    parts += ["## Keys of client metrics subscriptions\n", table(_TOPIC_COLUMNS, rows)]
    parts.append("## Broker keys\n")
    for title, keys in THEMES:
        parts += [f"### {title}\n", table(_BROKER_COLUMNS, map(_broker_row, shown(keys)))]
    rows = map(_broker_row, DYNAMIC_ONLY_KEYS.values())
    parts += ["### Only while a broker runs\n", table(_BROKER_COLUMNS, rows)]
    return "\n".join(parts)


def shown(keys: Iterable[ConfigKey]) -> list[ConfigKey]:
    return sorted((key for key in keys if not key.internal), key=lambda key: key.name)


def table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [columns, ("---",) * len(columns), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def _broker_row(key: ConfigKey) -> tuple[str, ...]:
    dynamic = "no" if key.update_mode == "read-only" else key.update_mode
    return (
        f"`{key.name}`",
        key.type.lower(),
        default_text(key),
        key.allowed(),
        dynamic,
        effect_text(key),
        key.doc,
    )


def _topic_row(key: ConfigKey) -> tuple[str, ...]:
    synonyms = ", ".join(f"`{synonym.name}`" for synonym in SYNONYMS.get(key.name, ()))
    return (
        f"`{key.name}`",
        key.type.lower(),
        default_text(key),
        key.allowed(),
        synonyms,
        effect_text(key),
        key.doc,
    )


def _group_row(key: ConfigKey) -> tuple[str, ...]:
    of_brokers = broker_key(key.name)
    name, kind, default, allowed, _, *rest = _topic_row(key)
    return (name, kind, default, allowed, "" if of_brokers is None else f"`{of_brokers}`", *rest)


def effect_text(key: ConfigKey) -> str:
    return "**active**" if key.effect == "active" else key.effect


def default_text(key: ConfigKey) -> str:
    if isinstance(key.default, Required):
        return "must be given"
    text = render(key.default)
    if text is None:
        return "none"
    return f"`{text}`{_in_words(key)}" if text else "empty"


def _in_words(key: ConfigKey) -> str:
    """Returns a large number of bytes or milliseconds in a larger unit, if it is a whole number of them."""
    if isinstance(key.default, bool) or not isinstance(key.default, int) or key.default <= 0:
        return ""
    units: tuple[tuple[int, str], ...] = ()
    if key.name.endswith((".bytes", ".size")):
        units = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
    elif key.name.endswith(".ms"):
        units = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))
    even = (f" ({key.default // size} {unit})" for size, unit in units if key.default % size == 0)
    return next(even, "")
