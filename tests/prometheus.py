"""A running Prometheus with the shipped rules, for tests that make alerts fire."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml

from strandline.cli.metrics import rules
from strandline.testing.clusters import free_ports, wait_until
from tests.scraping import read


class Prometheus:
    """Prometheus' own API: it scrapes twice a second, with the shipped rules in shorter times."""

    def __init__(self, url: str) -> None:
        self._url = url

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        status, _, text = read(f"{self._url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}")
        assert status == 200, text
        return [(each["metric"], float(each["value"][1])) for each in json.loads(text)["data"]["result"]]

    def value(self, expression: str) -> float | None:
        found = self.query(expression)
        return found[0][1] if len(found) == 1 else None

    def firing(self) -> set[str]:
        found = self.query('ALERTS{alertstate="firing"}')
        return {labels["alertname"].removeprefix("Strandline") for labels, _ in found}


@contextmanager
def prometheus(tools: Path, home: Path, *clusters: Sequence[str]) -> Iterator[Prometheus]:
    """Scrapes the pages of each cluster as a job of its own. Only durations of the rules are changed."""
    jobs = [
        {
            "job_name": f"strandline-{number}",
            "static_configs": [{"targets": [urllib.parse.urlsplit(url).netloc for url in urls]}],
        }
        for number, urls in enumerate(clusters)
    ]
    short = rules()
    for long, brief in (
        ("for: 5m", "for: 2s"),
        ("for: 1m", "for: 1s"),
        ("for: 30s", "for: 2s"),
        ("[5m]", "[6s]"),
    ):
        assert long in short
        short = short.replace(long, brief)
    (home / "rules.yml").write_text(short)
    config = {
        "global": {"scrape_interval": "500ms", "evaluation_interval": "500ms", "scrape_timeout": "400ms"},
        "rule_files": ["rules.yml"],
        "scrape_configs": jobs,
    }
    (home / "prometheus.yml").write_text(yaml.safe_dump(config))
    (port,) = free_ports(1)
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            [
                tools / "prometheus",
                *(f"--config.file={home}/prometheus.yml", f"--storage.tsdb.path={home}/data"),
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
            env={**os.environ, "GOMAXPROCS": "1"},
        )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: _is_up(url), said=(home / "log").read_text())
        yield Prometheus(url)
    finally:
        process.terminate()
        process.wait(20)


def _is_up(url: str) -> bool:
    try:
        return read(f"{url}/-/ready")[0] == 200
    except OSError:
        return False


def soon(condition: Callable[[], bool], said: Callable[[], object]) -> None:
    try:
        wait_until(condition, 90)  # of which a quiet machine needs a tenth
    except TimeoutError:
        raise AssertionError(f"it did not come true; there is {said()}") from None
