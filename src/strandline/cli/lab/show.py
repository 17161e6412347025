"""`strandline lab show`: the settings, steps and expected outcome of a scenario."""

from __future__ import annotations

import argparse
from typing import Final

from strandline.cli.exit_codes import DONE
from strandline.cli.failures import not_found
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import show

SHAPE: Final = {
    "name": "text",
    "title": "text",
    "source": "text",
    "claim": "text",
    "finding": "text",
    "settings": {"<setting>": "text"},
    "expected": {"<record fate>": "text"},
    "steps": "text",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Shows a scenario: what is said about it, its settings, its steps and the expected outcome."
    )
    parser.add_argument("scenario", metavar="SCENARIO", help="a name that `lab list` prints")
    add_json(parser, SHAPE)


def call(options: argparse.Namespace) -> int:
    from strandline.lab.scenario import UnknownScenario, load

    try:
        scenario = load(options.scenario)
    except UnknownScenario as error:
        raise not_found(str(error)) from None
    expected = {key: str(value) for key, value in scenario.expected.as_json().items()}
    expected |= scenario.facts
    expected |= {name: f"{low:g} to {high:g} s" for name, (low, high) in scenario.bounds.items()}
    document = {
        "name": scenario.name,
        "title": scenario.title,
        "source": scenario.source,
        "claim": scenario.claim,
        "finding": scenario.finding,
        "settings": scenario.settings,
        "expected": expected,
        "steps": scenario.steps,
    }
    if options.json:
        print_json(document)
        return DONE
    lines = [scenario.title, "", f"From:       {scenario.source}", f"Said there: {scenario.claim}"]
    if scenario.finding:
        lines.append(f"Found here: {scenario.finding}")
    lines += ["", "Settings:", *(f"  {key}={value}" for key, value in scenario.settings.items())]
    lines += ["", "Steps:", *scenario.steps.splitlines()[1:], "", "Expected:"]
    lines += [f"  {key.replace('_', ' ')}: {value}" for key, value in expected.items() if value]
    show(lines)
    return DONE
