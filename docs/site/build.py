"""Builds the site from README and docs: `python docs/site/build.py [DIRECTORY]`.

The pages keep their places, so that a link works in a clone, on a forge and on the site.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path

# Without it the theme prints an advertisement against a later MkDocs.
os.environ["NO_MKDOCS_2_WARNING"] = "true"

from mkdocs.commands.build import build
from mkdocs.config import load_config

ROOT = Path(__file__).parents[2]
STAGED = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs", "examples")


def build_site(directory: Path) -> None:
    """Builds into the directory; raises mkdocs' Abort if a link or an anchor leads nowhere."""
    with tempfile.TemporaryDirectory(prefix="strandline-site-") as staged:
        for name in STAGED:
            (Path(staged) / name).symlink_to(ROOT / name)
        config = load_config(
            str(ROOT / "docs" / "site" / "mkdocs.yml"), docs_dir=staged, site_dir=str(directory), strict=True
        )
        config.plugins.on_startup(command="build", dirty=False)
        try:
            build(config)
        finally:
            config.plugins.on_shutdown()


def main() -> None:
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"
    shutil.rmtree(directory, ignore_errors=True)
    build_site(directory.resolve())
    print(
        f"{directory}/index.html; for search: python -m http.server --bind 127.0.0.1 --directory {directory}"
    )


if __name__ == "__main__":
    main()
