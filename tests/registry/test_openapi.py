"""schemathesis makes requests from the served OpenAPI document, good ones and bad ones."""

from __future__ import annotations

from typing import Any

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from strandline.registry.http.openapi import openapi_document
from strandline.registry.http.paths import PATTERNS
from strandline.testing import RegistryProcess
from tests.registry.conftest import Rest

schema = schemathesis.openapi.from_dict(openapi_document())
# Settings of everybody would be changed under the other tests.
schema = schema.exclude(path=["/config", "/mode"], method=["PUT", "DELETE"])


def test_every_path_is_in_the_document() -> None:
    unlisted = {"/", "/openapi.json", "/contexts/{context}", "/v1/metadata/deployment"}
    assert set(openapi_document()["paths"]) | unlisted == set(PATTERNS)


@schema.parametrize()
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_responses_are_as_documented(case: Any, strandline_registry: RegistryProcess) -> None:
    checks = (
        not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_schema_conformance,
    )
    case.call_and_validate(base_url=strandline_registry.url, checks=checks)


def test_the_document_is_served(strandline_registry: RegistryProcess) -> None:
    assert Rest(strandline_registry.url)("GET", "/openapi.json") == (200, openapi_document())
