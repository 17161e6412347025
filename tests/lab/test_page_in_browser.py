"""The page of a run in Chromium: stepped by keyboard, told to a screen reader, in light and dark, narrow and wide."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.lab.page import page_of
from strandline.lab.run import Run, run_simulated
from strandline.lab.scenario import load
from tests.oracle.browser import Page, browser
from tests.oracle.fetch import CHROMIUM
from tests.oracle.require import require

SIZES = [(390, 844), (1280, 900)]
# Boxes of what stands beside or below one another, and of the words in the picture.
OVERLAPS = """(() => {
  const boxes = [
    ...document.querySelectorAll("main > *, .controls > *, #facts > dd, .key span"),
    ...document.querySelectorAll("svg text"),
  ].map(element => ({ element, box: element.getBoundingClientRect() })).filter(each => each.box.width > 0);
  const found = [];
  for (const one of boxes) for (const other of boxes) {
    if (one === other || one.element.contains(other.element) || other.element.contains(one.element)) continue;
    const wide = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
    const high = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
    if (wide > 1 && high > 1) found.push(`${one.element.textContent.trim()} / ${other.element.textContent.trim()}`);
  }
  return found;
})()"""
OUTSIDE = """[...document.querySelectorAll("main *, svg *")].filter(each => {
  const box = each.getBoundingClientRect();
  return box.width > 0 && (box.left < -1 || box.right > innerWidth + 1);
}).map(each => each.outerHTML.slice(0, 80))"""
# The contrast of an element's text on what is below it (WCAG 2).
CONTRAST = """(selector => {
  const numbers = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const linear = part => part <= .03928 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4;
  const light = colour => numbers(colour).map(part => linear(part / 255))
    .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
  const element = document.querySelector(selector), style = getComputedStyle(element);
  let below = element;
  while (below && getComputedStyle(below).backgroundColor === "rgba(0, 0, 0, 0)") below = below.parentElement;
  const colour = element instanceof SVGElement ? style.fill : style.color;
  const [a, b] = [light(colour), light(getComputedStyle(below).backgroundColor)].sort((x, y) => y - x);
  return (a + .05) / (b + .05);
})"""


# The second moves a partition between five replicas, more than any other scenario has.
@pytest.fixture(scope="module", params=["unclean-election-8-6-4", "reassigned-while-leaders-die"])
def run(request: pytest.FixtureRequest) -> Run:
    return run_simulated(load(request.param))


@pytest.fixture(scope="module")
def page(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    path = tmp_path_factory.mktemp("page") / "run.html"
    path.write_text(page_of(run))
    with browser(require(CHROMIUM)) as started:
        opened = started.new_page()
        opened.open(path.as_uri())
        yield opened


def step(page: Page) -> str:
    return str(page.evaluate("document.getElementById('count').textContent"))


def told(page: Page) -> str:
    return str(page.evaluate("document.getElementById('now').textContent"))


def test_keys_step_forward_and_back_and_to_both_ends(page: Page, run: Run) -> None:
    entries = run.timeline.entries
    page.press("Home")
    assert step(page) == f"1 of {len(entries)}"
    assert entries[0].line in told(page)
    page.press("ArrowRight")
    page.press("ArrowRight")
    page.press("ArrowLeft")
    assert step(page) == f"2 of {len(entries)}"
    assert entries[1].line in told(page)
    page.press("End")
    page.press("ArrowRight")
    assert step(page) == f"{len(entries)} of {len(entries)}"
    page.evaluate("document.getElementById('back').focus()")
    page.press("Home")
    page.press("ArrowLeft")
    assert step(page) == f"1 of {len(entries)}"
    assert page.evaluate("document.activeElement.id") == "back", "a button at its end keeps the focus"
    page.evaluate("document.querySelector('#entries li:nth-child(5) button').click()")
    assert step(page) == f"5 of {len(entries)}"
    assert page.evaluate("document.querySelector('[aria-current=step]').textContent").endswith(
        entries[4].line
    )


def test_screen_reader_is_told_the_picture_the_place_and_what_changes(page: Page, run: Run) -> None:
    page.press("Home")
    page.press("ArrowRight")
    nodes = page.accessible()
    names = {(node["role"], node["name"]) for node in nodes}
    assert {
        ("button", "Back"),
        ("button", "Forward"),
        ("heading", run.scenario.title),
        ("heading", "Timeline"),
    } <= names
    (picture,) = (node for node in nodes if node["role"] == "image")
    assert picture["name"].startswith("The partition")
    for replica in run.timeline.entries[1].view.replicas:
        assert f"broker {replica.broker}" in picture["name"].lower()
    (slider,) = (node for node in nodes if node["role"] == "slider")
    assert slider["name"] == "Step"
    assert slider["value"] == 1
    said = page.evaluate("document.getElementById('place').getAttribute('aria-valuetext')")
    assert said.startswith(f"2 of {len(run.timeline.entries)}: ")
    assert any(node["properties"].get("live") == "polite" for node in nodes)
    assert any(node["role"] == "main" for node in nodes)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]} px")
def test_page_fits_and_can_be_read(page: Page, size: tuple[int, int], scheme: str, tmp_path: Path) -> None:
    page.look(*size, scheme)
    page.press("Home")
    for key in ("ArrowRight", "End"):
        page.press(key)
        page.screenshot(tmp_path / f"{key}.png")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate(OUTSIDE) == []
        assert page.evaluate(OVERLAPS) == []
        for selector in (
            "h1",
            "dt",
            "dd",
            ".verdict",
            "#now",
            "#entries .kind",
            "svg text",
            "svg text.faint",
            "#back",
        ):
            assert page.evaluate(f"{CONTRAST}({selector!r})") >= 4.5, selector
    is_dark = page.evaluate(
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every(each => each < 64)"
    )
    assert is_dark == (scheme == "dark")


def test_nothing_is_asked_of_the_network_and_no_script_fails(page: Page) -> None:
    assert [each.partition(":")[0] for each in page.requests] == ["file"]
    assert page.errors == []
