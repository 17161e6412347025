"""Reads what a node serves over HTTP."""

from __future__ import annotations

import urllib.error
import urllib.request

from prometheus_client.parser import text_string_to_metric_families as parse_text

# By name: labels and value of each series.
Samples = dict[str, list[tuple[dict[str, str], float]]]


def read(url: str, *, accept: str = "") -> tuple[int, str, str]:
    request = urllib.request.Request(url, headers={"Accept": accept} if accept else {})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, response.headers["Content-Type"], response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read().decode()


def samples_of(url: str) -> Samples:
    found: Samples = {}
    for family in parse_text(read(url)[2]):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return found
