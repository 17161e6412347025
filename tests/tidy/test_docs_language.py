"""The Markdown pages are written for tired readers: Kafka's words, and sentences whose subject comes first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Pages that are made from the code have their words from there: tests/tidy/test_language.py looks at those.
GENERATED = {"docs/reference"}
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if not any(path.relative_to(ROOT).as_posix().startswith(each) for each in GENERATED)
)
# House words, and the words of Kafka or of plain English that stand for them.
FORBIDDEN = {
    r"\banew\b": "again",
    r"\b[Aa]nswer(s|ed|ing)?\b": "response, or the thing itself",
    r"\b[Ww]hoever\b": "the subject itself",
    r"\b(wait|waiting|waits|lies|stands?|stood|left|sends?|sent) behind\b": "after",
}
# The places where a forbidden word is the right one.
ALLOWED = ("tests/compat/test_oracle_answers.py",)
# Names that decisions quote of other projects.
FOREIGN = {"binary_view", "reflect", "epoll_wait", "DeltaTemporality", "strandline_"}
CHANGELOG_GROUPS = ("### Added", "### Changed", "### Fixed")


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the lines of a page outside of code, with their numbers."""
    in_code = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code and not line.startswith("    "):
            yield number, line


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_page_uses_a_house_word_where_there_is_a_plain_one(path: Path) -> None:
    found = []
    for number, line in prose(path):
        for each in ALLOWED:
            line = line.replace(each, "")
        found += [
            f"{number}: {line.strip()} (say {word})"
            for bad, word in FORBIDDEN.items()
            if re.search(bad, line)
        ]
    assert found == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_sentence_opens_with_what(path: Path) -> None:
    """A sentence that begins with "What" has its subject at the end; a question in a heading may begin so."""
    found = [
        f"{number}: {line.strip()}"
        for number, line in prose(path)
        if not line.startswith("#") and re.match(r"(?:[-*] |\d+\. )?(?:\*\*)?What [^?]*$", line.strip())
    ]
    assert found == []


def test_the_changelog_is_grouped_and_says_nothing_twice() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    unreleased = text.split("\n## ")[1]
    assert re.findall(r"^### .*$", unreleased, re.MULTILINE) == list(CHANGELOG_GROUPS)
    bullets = re.findall(r"^- (.*(?:\n  .*)*)", text, re.MULTILINE)
    firsts = [" ".join(each.split())[:60] for each in bullets]
    assert sorted({each for each in firsts if firsts.count(each) > 1}) == []
    assert re.search(r"^- .*\n\n- ", text, re.MULTILINE) is None, "a blank line stands between two bullets"
    for number, line in enumerate(text.splitlines(), 1):
        assert line.startswith(("#", "- ", "  ")) or not line or number < 6, (
            f"line {number} is in no group: {line}"
        )


def test_every_word_of_the_glossary_stands_there_once() -> None:
    text = (ROOT / "docs/glossary.md").read_text()
    words = re.findall(r"^\| ([a-z][^|]*?) \|", text, re.MULTILINE)
    assert sorted({word for word in words if words.count(word) > 1} - {"word", "scenario", "stage"}) == []


def test_every_name_that_a_decision_quotes_exists() -> None:
    """A class, a function or a setting in backticks is somewhere in the code, the tests or the benchmarks."""
    folders = [ROOT / each for each in ("src", "tests", "bench", "native/src", "examples")]
    files = (
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix in (".py", ".rs", ".sh", ".pyi")
    )
    words = {word for path in files for word in re.findall(r"\w+", path.read_text())}
    missing = [
        f"{page.name}: {quoted}"
        for page in sorted((ROOT / "docs/adr").glob("0*.md"))
        for quoted in re.findall(r"`([A-Za-z_][\w.]*)(?:\([^`]*\))?`", page.read_text())
        if (name := quoted.rpartition(".")[2]) not in words | FOREIGN
        and name not in ("", "py", "sh", "md", "json")
    ]
    assert missing == []
