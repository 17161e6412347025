"""Conversations with Confluent's registry, repeated with ours: status, error code, message, attributes and their order.

They were recorded with version 8.3.2, built from its public source, with rule sets allowed. Each line of a file is one
request and the response to it. Ids are numbered by their first appearance, so that they need not begin at 1. Where
Confluent's message is that of a Java library (bad JSON, a schema that does not parse), only status and code count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from strandline.testing import BrokerProcess, RegistryProcess, running_registry
from tests.registry.conftest import Rest

RECORDED = Path(__file__).parent / "recorded"
_UNORDERED = re.compile(r"/schemas/ids/[^/]+/(subjects|versions)")
_BY_ID = re.compile(r"/schemas/ids/[^/]+$")
# An old schema in a message may have brackets and commas of its own.
_PARTS = re.compile(r", (?=\{)|\[|\]")


class Numbering:
    """The ids of one registry, numbered as they appear."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._ids: dict[int, int] = {}

    def number(self, id: int) -> str:
        if id not in self._numbers:
            self._numbers[id] = len(self._numbers) + 1
            self._ids[self._numbers[id]] = id
        return f"#{self._numbers[id]}"

    def with_ids(self, path: str) -> str:
        """Returns a path in which `$3` is replaced by the third id that appeared."""
        return re.sub(r"\$(\d+)", lambda found: str(self._ids.get(int(found[1]), 900 + int(found[1]))), path)

    def numbered(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.numbered(each) for each in value]
        if not isinstance(value, dict):
            return value
        return {key: self._attribute(key, each) for key, each in value.items()}

    def _attribute(self, key: str, value: Any) -> Any:
        if key in ("ts", "maxId"):
            return 0
        if key == "id" and isinstance(value, int):
            return self.number(value) if 0 <= value < 1000 else f"#{value}"
        if key == "messages":
            return sorted("Invalid schema" if each.startswith("Invalid schema") else each for each in value)
        if key == "message" and "details: [{errorType" in value:
            return sorted(_PARTS.split(value))
        if key == "message":
            return re.sub(r"(Schema |id )(\d+)", lambda found: found[1] + self._known(int(found[2])), value)
        return self.numbered(value)

    def _known(self, id: int) -> str:
        return f"#{self._numbers.get(id, id)}"


def comparable(method: str, path: str, value: Any, numbering: Numbering) -> Any:
    """Returns a response without the parts that may differ: times, ids, the order of sets, texts of Java's
    libraries."""
    made = numbering.numbered(value)
    place = urlsplit(path).path
    if isinstance(made, list):
        if _UNORDERED.search(place):
            return sorted(made, key=str)
        if place.endswith("/referencedby"):
            return [numbering.number(each) for each in made]
    if isinstance(made, dict):
        if method == "POST":  # Confluent's registry has them or not, depending on how it found the schema
            made = {key: each for key, each in made.items() if key not in ("ts", "deleted")}
        if made.get("error_code") in (400, 422, 42201):
            return {"error_code": made["error_code"]}
        if _BY_ID.search(place) and f"subject={made.get('subject')}" not in path:  # any place that has the id
            return {key: each for key, each in made.items() if key not in ("subject", "version")}
    return made


@pytest.fixture
def fresh_registry(
    strandline_broker: BrokerProcess, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[RegistryProcess]:
    name = f"_recorded-{request.node.callspec.params['name']}"
    log = tmp_path / "registry.log"
    with running_registry(strandline_broker.bootstrap, log, "--topic", name, "--group", name) as registry:
        yield registry


@pytest.mark.parametrize("name", sorted(each.stem for each in RECORDED.glob("*.jsonl")))
def test_our_responses_are_confluents(name: str, fresh_registry: RegistryProcess) -> None:
    rest, numbering, wrong, count = Rest(fresh_registry.url), Numbering(), [], 0
    for line in (RECORDED / f"{name}.jsonl").read_text().splitlines():
        method, path, body, headers, status, response = json.loads(line)
        sent = body.encode() if isinstance(body, str) else body
        got_status, got = rest(method, numbering.with_ids(path), sent, headers)
        got = comparable(method, path, got, numbering)
        count += 1
        if status is not None and json.dumps([got_status, got]) != json.dumps([status, response]):
            wrong.append(
                f"{method} {path} {body}\n  Confluent {status} {response}\n  ours      {got_status} {got}"
            )
    assert count >= 200
    assert not wrong, f"{len(wrong)} of {count} differ:\n" + "\n".join(wrong[:5])
