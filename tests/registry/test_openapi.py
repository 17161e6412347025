"""schemathesis makes requests from the served OpenAPI document, good ones and bad ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
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
from strandline.testing import BrokerProcess, RegistryProcess, running_registry
from tests.registry.conftest import Rest

schema = schemathesis.openapi.from_dict(openapi_document())


@pytest.fixture(scope="module")
def own_registry(
    strandline_broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RegistryProcess]:
    """Settings of everybody are changed here, so that no other test shares this one."""
    log = tmp_path_factory.mktemp("openapi") / "registry.log"
    with running_registry(
        strandline_broker.bootstrap, log, "--topic", "_openapi", "--group", "openapi"
    ) as made:
        yield made


def test_every_path_is_in_the_document() -> None:
    unlisted = {"/", "/openapi.json", "/contexts/{context}", "/v1/metadata/deployment"}
    assert set(openapi_document()["paths"]) | unlisted == set(PATTERNS)


@schema.parametrize()
@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_responses_are_as_documented(case: Any, own_registry: RegistryProcess) -> None:
    checks = (
        not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_schema_conformance,
    )
    case.call_and_validate(base_url=own_registry.url, checks=checks)


def test_the_document_is_served(own_registry: RegistryProcess) -> None:
    assert Rest(own_registry.url)("GET", "/openapi.json") == (200, openapi_document())
