"""KIP-482 and KIP-511: which header goes with which request and response."""

from __future__ import annotations

import pytest

from strandline.wire.api.k03_metadata import MetadataRequest
from strandline.wire.api.k18_api_versions import ApiVersionsRequest
from strandline.wire.codec import decode, encode
from strandline.wire.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)


def test_a_flexible_request_has_header_version_2() -> None:
    assert request_header_version(MetadataRequest.FLEXIBLE, 8) == 1
    assert request_header_version(MetadataRequest.FLEXIBLE, 9) == 2


@pytest.mark.parametrize("version", range(5))
def test_a_response_to_api_versions_never_has_tagged_fields_in_its_header(version: int) -> None:
    assert response_header_version(18, ApiVersionsRequest.FLEXIBLE, version) == 0


def test_a_flexible_response_has_header_version_1() -> None:
    assert response_header_version(3, MetadataRequest.FLEXIBLE, 8) == 0
    assert response_header_version(3, MetadataRequest.FLEXIBLE, 9) == 1


def test_the_client_id_keeps_its_two_byte_length_in_a_flexible_header() -> None:
    header = RequestHeader(request_api_key=3, request_api_version=9, correlation_id=5, client_id="ab")
    data = bytes(encode(header, 2))
    assert data == bytes.fromhex("0003 0009 00000005 0002") + b"ab" + b"\x00"
    assert decode(RequestHeader, 2, data) == header


def test_a_response_header_is_the_correlation_id_and_tags() -> None:
    assert bytes(encode(ResponseHeader(correlation_id=7), 0)) == bytes.fromhex("00000007")
    assert bytes(encode(ResponseHeader(correlation_id=7), 1)) == bytes.fromhex("0000000700")
