"""`strandline configs diff`: shows the settings that are not at their default."""

from __future__ import annotations

import argparse

from strandline.cli.configs import get


def add_arguments(parser: argparse.ArgumentParser) -> None:
    get.add_arguments(parser, only_changed=True)


def call(options: argparse.Namespace) -> int:
    return get.call(options)
