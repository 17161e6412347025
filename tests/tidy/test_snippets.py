"""Every snippet of README, of the guides and of the pages for operators is run by a test, or says why not."""

from __future__ import annotations

import re

import pytest

from tests.docs.fences import DIRECTIVES, WITH_ARGUMENT, fences_of
from tests.docs.pages import ON_SPARK, PAGES, PROVED_ELSEWHERE, ROOT

LANGUAGES = {"console", "ini", "json", "properties", "python", "sh", "sql", "text", "toml", "yaml"}
NOT_RUN_REASON_MIN = 12


@pytest.mark.parametrize("page", PAGES)
def test_every_fence_says_how_it_is_proved(page: str) -> None:
    wrong = []
    for fence in fences_of(ROOT / page):
        where = f"{page}:{fence.line}"
        if page in PROVED_ELSEWHERE:
            continue
        if fence.language not in LANGUAGES:
            wrong.append(
                f"{where}: the language {fence.language!r} is none of {', '.join(sorted(LANGUAGES))}"
            )
        if fence.directive and fence.directive not in DIRECTIVES:
            wrong.append(f"{where}: the comment {fence.directive!r} is not known")
        if fence.directive in WITH_ARGUMENT and not fence.argument:
            wrong.append(f"{where}: the comment {fence.directive!r} needs more, after a colon")
        if fence.directive == "not run" and len(fence.argument) < NOT_RUN_REASON_MIN:
            wrong.append(f"{where}: {fence.argument!r} is no reason")
        if fence.directive == "proved by" and not (ROOT / fence.argument).is_file():
            wrong.append(f"{where}: there is no {fence.argument}")
    assert wrong == []


@pytest.mark.parametrize("page", PAGES)
def test_code_is_in_fences(page: str) -> None:
    """A block that is only indented would be run by nobody."""
    text = re.sub(
        r"^ *```.*?^ *```$|<!--.*?-->", "", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL
    )
    assert re.findall(r"(?:^|\n)\n( {4}\S[^\n]*)", text) == []


@pytest.mark.parametrize("page", sorted(PROVED_ELSEWHERE))
def test_a_page_that_another_test_proves_is_named_there(page: str) -> None:
    assert page in PAGES
    proof = (ROOT / PROVED_ELSEWHERE[page]).read_text()
    name = page.rpartition("/")[2]
    assert name in proof or f"{name.partition('-')[0]}-*.md" in proof


def test_pages_on_spark_exist() -> None:
    assert set(PAGES) >= ON_SPARK
