"""`strandline configs presets`: settings for producers, consumers, topics and clusters that belong together."""

from __future__ import annotations

import argparse
from typing import Final

from strandline.cli.exit_codes import DONE
from strandline.cli.failures import not_found, usage
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import show, table

_SETTINGS: Final = {"<setting>": "text"}
SHAPE: Final = {
    "presets": [
        {
            "name": "text",
            "use": "text",
            "producer": _SETTINGS,
            "consumer": _SETTINGS,
            "topic": _SETTINGS,
            "cluster": _SETTINGS,
            "notes": ["text"],
        }
    ]
}
_PARTS: Final = ("producer", "consumer", "topic", "cluster")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Shows the presets, or one preset with its settings. `up`, `topics create`, `produce`, `consume` and `lab "
        "check` use a preset with --preset. With --part the settings are printed as a .properties file for any "
        "client."
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="show this preset with its settings")
    parser.add_argument("--part", choices=_PARTS, help="print only this part of NAME, as a .properties file")
    add_json(parser, SHAPE)


def call(options: argparse.Namespace) -> int:
    from strandline.config.presets import PRESETS, UnknownPreset, preset

    if options.part is not None and (options.name is None or options.json):
        raise usage("--part needs the NAME of a preset, and prints no JSON")
    try:
        chosen = list(PRESETS.values()) if options.name is None else [preset(options.name)]
    except UnknownPreset as error:
        raise not_found(str(error)) from None
    if options.json:
        rows = [
            {
                "name": each.name,
                "use": each.use,
                **{part: dict(settings) for part, settings in each.parts.items()},
                "notes": list(each.notes),
            }
            for each in chosen
        ]
        print_json({"presets": rows})
    elif options.part is not None:
        print("\n".join(f"{key}={value}" for key, value in chosen[0].part(options.part).items()))
    elif options.name is None:
        show(table(("PRESET", "FOR"), [(each.name, each.use) for each in chosen]))
    else:
        only = chosen[0]
        lines = [only.use]
        for part, settings in only.parts.items():
            lines += ["", f"{part}:", *(f"  {key}={value}" for key, value in settings.items())]
        show([*lines, "", *(f"note: {each}" for each in only.notes)])
    return DONE
