"""The site is built without a broken link, loads nothing from elsewhere, and can be searched without the network."""

from __future__ import annotations

import importlib.util
import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT
from tests.oracle.browser import Page, browser
from tests.oracle.fetch import CHROMIUM
from tests.oracle.require import require

pytestmark = pytest.mark.xdist_group("site")

FOUND = "[...document.querySelectorAll('.md-search-result__link')].map(each => each.href)"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built strictly: a link or an anchor that leads nowhere is an error."""
    spec = importlib.util.spec_from_file_location("build_site", ROOT / "docs" / "site" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    directory = tmp_path_factory.mktemp("site") / "site"
    module.build_site(directory)
    return directory


def test_each_page_is_there_and_asks_for_nothing_elsewhere(site: Path) -> None:
    for page in PAGES:
        name = "index.html" if page == "README.md" else page.removesuffix(".md") + ".html"
        text = (site / name).read_text()
        loaded = re.findall(r"<(?:script|img|iframe|source)\b[^>]*?\bsrc=\"?([^\"\s>]+)", text)
        loaded += re.findall(
            r"<link\b[^>]*\brel=\"?(?:stylesheet|preconnect|icon)\b[^>]*?href=\"?([^\"\s>]+)", text
        )
        assert loaded, name
        assert [each for each in loaded if "//" in each] == [], name


def test_readme_is_the_first_page_and_its_links_lead_to_pages(site: Path) -> None:
    text = (site / "index.html").read_text()
    links = re.findall(r'href="(docs/[^"#]+|[A-Z]+\.html)', text)
    assert "docs/guides/getting-started.html" in links
    assert [link for link in links if not (site / link).exists()] == []


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    """As `python -m http.server` serves it."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


@pytest.fixture
def page() -> Iterator[Page]:
    with browser(require(CHROMIUM)) as started:
        yield started.new_page()


@pytest.mark.oracle
def test_the_site_is_read_and_searched_without_the_network(address: str, page: Page) -> None:
    page.open(address)
    assert page.evaluate("document.querySelector('article img').naturalWidth") > 0
    page.evaluate("document.querySelector('[data-md-component=search-query]').focus()")
    page.call("Input.insertText", text="cooperative rebalance")
    page.wait_for("document.querySelectorAll('.md-search-result__link').length > 0")
    assert all(link.startswith(address) for link in page.evaluate(FOUND))
    assert [each for each in page.requests if not each.startswith((address, "data:", "blob:"))] == []
    assert page.errors == []
