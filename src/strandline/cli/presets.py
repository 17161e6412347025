"""`--preset NAME`: a group of settings. Settings that are given one by one override them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from strandline.config.presets import PRESETS, preset

if TYPE_CHECKING:
    from strandline.config.presets import Preset

# Broker settings that are a number of replicas.
_REPLICAS: Final = (
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
)
_MINIMUM: Final = "min.insync.replicas"


def add_preset(parser: argparse.ArgumentParser, what: str) -> None:
    """Adds `--preset`; `what` describes the settings that it gives to this command."""
    parser.add_argument(
        "--preset",
        choices=tuple(PRESETS),
        help=f"{what} (`strandline configs presets` shows them; settings that are given one by one override them)",
    )


def preset_of(options: argparse.Namespace) -> Preset | None:
    """Returns the named preset; None without one."""
    return None if options.preset is None else preset(options.preset)


def client_part(options: argparse.Namespace, kind: str) -> dict[str, str]:
    """Returns the settings of the named preset for this kind of client."""
    chosen = preset_of(options)
    return {} if chosen is None else dict(chosen.part(kind))


def broker_part(options: argparse.Namespace, nodes: int) -> tuple[dict[str, str], list[str]]:
    """Returns the broker settings of the named preset, lowered if there are too few brokers, and sentences about what
    was lowered."""
    chosen = preset_of(options)
    if chosen is None:
        return {}, []
    settings, notes = chosen.broker_settings, []
    for key in _REPLICAS:
        if key in settings and int(settings[key]) > nodes:
            notes.append(f"{key} is {nodes}, not {settings[key]}: {chosen.name} needs more nodes")
            settings[key] = str(nodes)
    if int(settings[_MINIMUM]) > nodes:
        notes.append(
            f"{_MINIMUM} is {nodes}, not {settings[_MINIMUM]}: nothing survives the loss of a disk before there are "
            f"{chosen.replication_factor} nodes (--nodes {chosen.replication_factor})"
        )
        settings[_MINIMUM] = str(nodes)
    return settings, notes
