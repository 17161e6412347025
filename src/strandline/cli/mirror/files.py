"""The file of a mirror, and the flow of it that an action is about."""

from __future__ import annotations

import argparse
import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from strandline.mirror.config.settings import FlowSettings, MirrorSettings

_YAML_ENDS = (".yaml", ".yml")


def add_config(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument(
        "--config",
        required=required,
        metavar="FILE",
        help="MirrorMaker 2's properties, or the same as .yaml",
    )


def add_action(actions: Any, name: str, help_: str, description: str) -> argparse.ArgumentParser:
    """Returns the parser of an action that is about one flow."""
    parser: argparse.ArgumentParser = actions.add_parser(name, help=help_, description=description)
    add_config(parser, required=True)
    parser.add_argument("--flow", metavar="FLOW", help="such as 'east->west', where the file has several")
    return parser


def load(path: str) -> MirrorSettings:
    """Returns the settings of a file. Raises MirrorConfigError."""
    from strandline.mirror.config.file import settings_of_text
    from strandline.mirror.config.settings import MirrorConfigError

    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise MirrorConfigError(f"--config {path} cannot be read: {error}") from error
    return settings_of_text(text, is_yaml=path.endswith(_YAML_ENDS))


def flow_of(options: argparse.Namespace) -> FlowSettings:
    """Returns the flow that an action is about."""
    logging.getLogger("strandline").addHandler(logging.NullHandler())  # errors are told once, by the command
    return load(options.config).flow(options.flow)
