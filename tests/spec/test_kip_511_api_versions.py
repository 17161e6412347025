"""KIP-511 and KIP-482: how clients and brokers find a common version."""

from __future__ import annotations

import struct

import pytest

from strandline.base.errors import ErrorCode
from strandline.wire.api.k18_api_versions import ApiVersionsRequest
from tests.unit.broker.world import World, in_world


@in_world()
async def test_an_unknown_version_gets_a_response_in_version_0(world: World) -> None:
    for version in (5, 99, 32767, -1):
        client = world.connect()
        client.give(struct.pack(">ihhih", 10, 18, version, 5, -1))
        response = await client.frame()
        correlation_id, error, count, key, low, high = struct.unpack(">ihihhh", response)
        assert (correlation_id, error, count) == (5, ErrorCode.UNSUPPORTED_VERSION, 1)
        assert (key, low, high) == (18, 0, 4)


@in_world()
async def test_the_response_s_header_has_no_tagged_fields_in_any_version(world: World) -> None:
    """A client that reads a flexible header where none is would take the error code's bytes for lengths."""
    client = world.connect()
    for version in range(5):
        client.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), version)
        frame = await client.frame()
        assert struct.unpack_from(">h", frame, 4)[0] == ErrorCode.NONE


@in_world()
async def test_produce_is_announced_from_0_and_taken_from_3(world: World) -> None:
    client = world.connect()
    response = await client.call(ApiVersionsRequest(), 0)
    produce = next(api for api in response.api_keys if api.api_key == 0)
    assert (produce.min_version, produce.max_version) == (0, 13)
    client.give(struct.pack(">ihhih", 10, 0, 2, 5, -1))
    assert await client.closed()


@in_world()
async def test_features_that_begin_at_level_0_are_told_from_version_4(world: World) -> None:
    """KAFKA-17492: Java's clients before 3.9 take no range that begins at 0 and would not connect at all."""
    client = world.connect()
    software = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    before, after = [(await client.call(software, version)).supported_features for version in (3, 4)]
    assert [feature.name for feature in before] == ["metadata.version"]
    assert "group.version" in {feature.name for feature in after if feature.min_version == 0}


@pytest.mark.parametrize(
    ("name", "version", "accepted"),
    [
        ("librdkafka", "2.3.0", True),
        ("a", "1", True),
        ("apache-kafka-java", "4.3.1-SNAPSHOT", True),
        ("", "1", False),
        ("-a", "1", False),
        ("a", "1-", False),
        ("a b", "1", False),
        ("a\n", "1", False),
        ("ä", "1", False),
    ],
)
def test_names_of_software_follow_a_pattern(
    name: str, version: str, accepted: bool, tmp_path: object
) -> None:
    @in_world()
    async def scenario(world: World) -> None:
        request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
        response = await world.connect().call(request, 3)
        assert (response.error_code == ErrorCode.NONE) == accepted
        if not accepted:
            assert response.error_code == ErrorCode.INVALID_REQUEST

    scenario(tmp_path)
