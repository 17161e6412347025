"""The asking side of a connection, without a network."""

from __future__ import annotations

import asyncio

import pytest

from strandline.base.errors import ErrorCode
from strandline.rpc.channel import Channel, ChannelClosed
from strandline.wire.api.k03_metadata import MetadataRequest
from strandline.wire.api.k18_api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from strandline.wire.codec import encode


class Wire:
    """A connection that takes everything and never responds."""

    def send(self, data: object) -> None:
        pass

    def abort(self) -> None:
        pass


def receive(channel: Channel, frame: bytes) -> None:
    data = len(frame).to_bytes(4, "big") + frame
    channel.buffer()[: len(data)] = data
    channel.received(len(data))


class Fails:
    """A receiver of a response that cannot take an error."""

    def done(self) -> bool:
        return False

    def set_result(self, result: object, /) -> None:
        raise AssertionError(result)

    def set_exception(self, exception: Exception, /) -> None:
        raise ZeroDivisionError


def test_every_request_of_a_lost_connection_fails_though_one_cannot_bear_it() -> None:
    async def main() -> None:
        told: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["exception"]))
        lost: list[bool] = []
        channel = Channel("test")
        channel.on_lost(lambda: lost.append(True))
        channel.connected(Wire())  # type: ignore[arg-type]
        channel.request_into(ApiVersionsRequest(), 0, Fails())
        behind = channel.request(ApiVersionsRequest(), 0)
        channel.lost(None)
        assert isinstance(behind.exception(), ChannelClosed)
        assert [type(each) for each in told] == [ZeroDivisionError]
        assert lost == [True]

    asyncio.run(main())


@pytest.mark.parametrize("frame", [(2).to_bytes(4, "big") + bytes(40), (1).to_bytes(4, "big") + bytes(2)])
def test_a_request_whose_own_response_cannot_be_read_fails_with_that_error(frame: bytes) -> None:
    async def main() -> None:
        channel = Channel("test")
        channel.connected(Wire())  # type: ignore[arg-type]
        asked = channel.request(MetadataRequest(topics=None), 1)
        receive(channel, frame)
        with pytest.raises(ChannelClosed, match="the response cannot be read"):
            asked.result()

    asyncio.run(main())


def test_a_broker_that_does_not_know_the_version_of_api_versions_responds_in_version_0() -> None:
    async def main() -> None:
        channel = Channel("test")
        channel.connected(Wire())  # type: ignore[arg-type]
        asked = channel.request(ApiVersionsRequest(), ApiVersionsRequest.VERSIONS.high)
        refused = ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=(ApiVersion(api_key=18, min_version=0, max_version=3),),
        )
        receive(channel, (1).to_bytes(4, "big") + encode(refused, 0))
        response = asked.result()
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert [each.max_version for each in response.api_keys] == [3]

    asyncio.run(main())
