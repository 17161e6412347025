"""The asking side of a connection, without a network."""

from __future__ import annotations

import asyncio

from strandline.rpc.channel import Channel, ChannelClosed
from strandline.wire.api.k18_api_versions import ApiVersionsRequest


class Wire:
    """A connection that takes everything and never answers."""

    def send(self, data: object) -> None:
        pass


class Fails:
    """What waits for an answer, and cannot bear that none comes."""

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
