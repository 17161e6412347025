"""A registry beside a broker, and short functions for requests to it."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from itertools import count
from typing import Any
from urllib.parse import quote

import pytest

from strandline.testing import RegistryProcess

_numbers = count(1)


class Rest:
    """Asks a registry over HTTP; returns the status and the decoded body."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent = {"Content-Type": "application/vnd.schemaregistry.v1+json"} | (headers or {})
        connection = HTTPConnection(self.url.removeprefix("http://"), timeout=30)
        try:
            connection.request(method, path, body=data, headers=sent)
            response = connection.getresponse()
            status, text = response.status, response.read()
        finally:
            connection.close()
        try:
            return status, json.loads(text) if text else None
        except ValueError:
            return status, text.decode()

    def register(self, subject: str, schema: Any, **more: Any) -> tuple[int, Any]:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        return self("POST", f"/subjects/{quote(subject, safe='')}/versions", {"schema": text, **more})


@pytest.fixture(scope="session")
def rest(strandline_registry: RegistryProcess) -> Rest:
    return Rest(strandline_registry.url)


@pytest.fixture
def subject() -> str:
    """A subject of this test's own."""
    return f"subject-{next(_numbers)}"


@pytest.fixture
def context() -> str:
    """A context of this test's own, as it precedes a subject."""
    return f":.context-{next(_numbers)}:"
