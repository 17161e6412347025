"""Responses of Confluent's registry 8.3.2, as they were recorded, are understood: schemas, their ids and versions, and
errors."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from strandline.ports.web import WebResponse
from strandline.serde import (
    RegistryRefused,
    Schema,
    SchemaRegistry,
    UnknownSchema,
    UnusableSchema,
)

RECORDED = Path(__file__).parents[1] / "registry" / "recorded"


class RecordedWeb:
    """Gives one recorded response, whatever it is asked for."""

    def __init__(self, status: int, body: Any) -> None:
        self._response = WebResponse(status, {}, json.dumps(body).encode())

    async def request(self, method: str, url: str, **more: Any) -> WebResponse:
        return self._response


async def outcome(method: str, path: str, status: int, body: Any) -> str:
    registry = SchemaRegistry({"url": "http://recorded", "max.retries": 0}, web=RecordedWeb(status, body))
    try:
        found = await registry.ask(method, path)
    except UnknownSchema:
        return "unknown"
    except UnusableSchema:
        return "unusable"
    except RegistryRefused as refused:
        return "refused" if refused.status == status else f"refused with {refused.status}"
    assert found == body
    if isinstance(body, dict) and isinstance(body.get("schema"), str):
        schema = Schema.from_json(body)
        assert schema.text == body["schema"]
        assert len(schema.references) == len(body.get("references") or ())
        return "schema"
    return "other"


async def test_every_recorded_response_is_understood() -> None:
    outcomes: Counter[tuple[int, str]] = Counter()
    for file in sorted(RECORDED.glob("*.jsonl")):
        for line in file.read_text().splitlines():
            method, path, _, _, status, body = json.loads(line)
            if status is None:  # a note about what follows
                continue
            outcomes[status, await outcome(method, path, status, body)] += 1
    assert outcomes[200, "schema"] > 50
    for (status, what), _ in outcomes.items():
        expected = {200: ("schema", "other"), 204: ("other",), 404: ("unknown", "refused"), 409: ("refused",)}
        assert what in expected.get(status, ("refused", "unusable")), (status, what)
    assert outcomes[404, "unknown"] > 10
    assert outcomes[409, "refused"] > 10
