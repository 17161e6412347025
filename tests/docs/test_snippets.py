"""The snippets of README, guides and operators' pages run, and print what the pages show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.fences import fences
from tests.docs.output import mismatch
from tests.docs.page_run import run_page
from tests.docs.pages import ROOT, RUN_HERE

PAGE_SECONDS_MAX = 300


@pytest.mark.parametrize("page", RUN_HERE)
def test_the_snippets_of_the_page_run(page: str, tmp_path: Path) -> None:
    """A process of its own, as pages change what belongs to a process: logging, signals."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.docs.page_run", page, str(tmp_path / "page")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PAGE_SECONDS_MAX,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout


def test_placeholders_stand_for_text_and_for_lines() -> None:
    assert mismatch("a … c\n…\nend", "a b c\nx\ny\nend\n") is None
    assert mismatch("a … c", "a b d\n") is not None
    assert mismatch("a\nb", "a\n") is not None


def test_fences_are_read_with_their_comments() -> None:
    text = (
        "<!-- output -->\n```text\n2\n```\n\n<!-- sh\ntrue\n-->\n- in a list\n\n  ```python\n  pass\n  ```\n"
    )
    assert [(each.language, each.text, each.directive, each.line) for each in fences(text)] == [
        ("text", "2\n", "output", 3),
        ("sh", "true\n", "", 7),
        ("python", "pass\n", "", 12),
    ]


def test_a_page_whose_snippet_fails_fails(tmp_path: Path) -> None:
    for body in (
        "```python\nprint(1)\n```\n\n<!-- output -->\n```text\n2\n```\n",
        "```console\n$ echo one\ntwo\n```\n",
        "```console\n$ exit 3\n```\n",
        "```sh\npip install '.[nothing]'\n```\n",
        "```json\n{\n```\n",
        "```\nno language\n```\n",
    ):
        page = tmp_path / "page.md"
        page.write_text(body)
        with pytest.raises(Exception) as raised:
            run_page(page, tmp_path / "run")
        assert isinstance(raised.value, AssertionError | ValueError), raised.value
