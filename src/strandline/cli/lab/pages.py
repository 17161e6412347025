"""`strandline lab pages`: makes the pages of the reference that are played."""

from __future__ import annotations

import argparse
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

from strandline.cli.arguments import whole_number
from strandline.cli.exit_codes import DONE
from strandline.cli.failures import usage
from strandline.cli.output.text import note

if TYPE_CHECKING:
    from strandline.lab.check.settings import CheckedSettings
    from strandline.lab.pages.played import Result

_WORKERS: Final = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Plays what the presets survive and what producers' settings guarantee, and prints the pages of the reference "
        "that say so."
    )
    parser.add_argument("--write", metavar="DIRECTORY", help="write the pages there instead of printing them")
    parser.add_argument(
        "--workers",
        type=whole_number,
        default=_WORKERS,
        metavar="COUNT",
        help=f"so many processes play at a time (default: {_WORKERS})",
    )


def call(options: argparse.Namespace) -> int:
    from strandline.lab.pages.pages import PAGES, played

    directory = None if options.write is None else Path(options.write)
    if directory is not None and not directory.is_dir():
        raise usage(f"there is no directory {directory}")
    known: dict[str, Result] = {}
    # Workers are processes of their own: a fork would have the threads and sockets of this process.
    with ProcessPoolExecutor(options.workers, multiprocessing.get_context("spawn")) as pool:

        def play_all(work: list[tuple[str, CheckedSettings]]) -> list[Result]:
            places = [f"{name} {settings}" for name, settings in work]
            new = {place: each for place, each in zip(places, work, strict=True) if place not in known}
            known.update(zip(new, pool.map(_play, new.values()), strict=True))
            return [known[place] for place in places]

        for page in PAGES:
            text = page.text(played(page, play_all))
            if directory is None:
                print(text)
            else:
                (directory / page.name).write_text(text)
                note(f"wrote {directory / page.name}")
    return DONE


def _play(work: tuple[str, CheckedSettings]) -> Result:
    from strandline.lab.pages.played import play_one

    return play_one(*work)
