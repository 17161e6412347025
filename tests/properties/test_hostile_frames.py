"""Damaged frames of every API, fed to a broker: it may respond or hang up, and nothing else.

They come from somebody whom nobody knows, at a broker that is open; and from users that have logged in, at a broker
with rules and quotas.
"""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.base.errors import ErrorCode
from strandline.broker.api.table import TABLE
from strandline.rpc.frames import SMALL_BYTES
from strandline.wire.api.k00_produce import ProduceRequest
from strandline.wire.codec import encode, encode_into
from strandline.wire.headers import RequestHeader, request_header_version
from strandline.wire.schema import Request
from tests.batches import batch
from tests.compat.wire import every_request_class
from tests.properties.mutations import mutations
from tests.unit.broker.requests import append, create, fetch, fetched, produce, records_of
from tests.unit.broker.world import Client, World

from .effort import effort
from .hostile_worlds import WORLDS, HostileWorld
from .messages import values

REQUESTS = {cls.API_KEY: cls for cls in every_request_class() if cls.API_KEY in TABLE}
FRAMES_EACH = 8
FRAMES_EACH_LOGGED_IN = 2
PAUSE_TURNS = 6


@st.composite
def frames(draw: st.DrawFn, cls: type[Request], version: int) -> bytes:
    """Returns a request of any contents, whole or damaged, after a good header."""
    message = draw(values(cls, version))
    if isinstance(message, ProduceRequest):
        message = draw(st.just(message) | st.just(produce(draw(batches()), acks=draw(st.integers(-2, 2)))))
    header = RequestHeader(
        request_api_key=cls.API_KEY, request_api_version=version, correlation_id=7, client_id="fuzz"
    )
    frame = encode(header, request_header_version(cls.FLEXIBLE, version))
    size = len(frame)
    encode_into(message, version, frame)
    body = bytes(frame)
    if draw(st.booleans()):
        body = body[:size] + draw(mutations(body[size:]))
    elif draw(st.booleans()):
        body = draw(mutations(body))
    return struct.pack(">i", len(body)) + body


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    made = batch(
        draw(st.integers(1, 3)),
        codec=draw(st.integers(0, 4)),
        producer_id=draw(st.sampled_from((-1, 5))),
        epoch=draw(st.integers(-1, 1)),
        sequence=draw(st.integers(-1, 3)),
    )
    return draw(st.just(made) | mutations(made))


def survivable(frame: bytes) -> bool:
    """Frames that change the witness, or what the witness needs, on purpose are not damage."""
    return b"witness" not in frame


@pytest.fixture(scope="module")
def loop() -> Any:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module", params=WORLDS)
def hostile(
    request: pytest.FixtureRequest, loop: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    made = loop.run(WORLDS[request.param](tmp_path_factory.mktemp("hostile")))
    yield made
    loop.run(made.world.stop())
    made.world.check()


BROKER_LISTENER, CONTROLLER_LISTENER = "broker", "controller"
PLACES = [
    pytest.param(key, listener, id=f"{TABLE[key].name}-{listener}")
    for key in REQUESTS
    for listener in (BROKER_LISTENER, CONTROLLER_LISTENER)
    if TABLE[key].is_served_on(controller_listener=listener == CONTROLLER_LISTENER)
]


@pytest.mark.parametrize(("key", "listener"), PLACES)
def test_no_frame_of_this_api_harms_the_broker(
    key: int, listener: str, hostile: HostileWorld, loop: asyncio.Runner
) -> None:
    api, cls = TABLE[key], REQUESTS[key]

    @effort(FRAMES_EACH if hostile.user is None else FRAMES_EACH_LOGGED_IN, soak=300)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        version = data.draw(st.integers(api.version_min, api.version_max))
        sent = data.draw(st.lists(frames(cls, version).filter(survivable), min_size=1, max_size=4))
        loop.run(feed(hostile, listener, sent))

    check()


def test_requests_that_are_never_whole_harm_nobody(hostile: HostileWorld, loop: asyncio.Runner) -> None:
    """Many connections that send the beginning of a request, of any announced size, and go or stay."""

    @effort(20, soak=1000)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        beginnings = st.tuples(
            st.sampled_from((BROKER_LISTENER, CONTROLLER_LISTENER)),
            st.integers(-(2**31), 2**31 - 1) | st.integers(0, 2**20) | st.just(100_000_000),
            st.binary(max_size=20_000),
            st.booleans(),
        )
        drawn = data.draw(st.lists(beginnings, min_size=1, max_size=60))
        loop.run(begin_and_break_off(hostile, drawn))

    check()


async def begin_and_break_off(hostile: HostileWorld, beginnings: list[tuple[str, int, bytes, bool]]) -> None:
    world, waiting = hostile.world, []
    for listener, announced, given_bytes, goes in beginnings:
        client = await connect(hostile, listener)
        client.give(struct.pack(">i", announced) + given_bytes[: max(announced - 1, 0)])
        if goes:
            client.disconnect()
        else:
            waiting.append(client)
    await asyncio.sleep(0)
    used = world.broker.request_memory.used
    assert used <= sum(len(each[2]) for each in beginnings) + 2 * SMALL_BYTES * len(beginnings)
    witness = await hostile.witness()
    await is_unharmed(witness)
    for client in (*waiting, witness):
        client.disconnect()
    await asyncio.sleep(0)
    assert world.broker.request_memory.used == 0
    world.check()


async def connect(hostile: HostileWorld, listener: str) -> Client:
    return await hostile.connect(is_controller_listener=listener == CONTROLLER_LISTENER)


async def feed(hostile: HostileWorld, listener: str, sent: list[bytes]) -> None:
    client = await connect(hostile, listener)
    for frame in sent:
        if not client.is_closed:
            client.give(frame)
        for _ in range(PAUSE_TURNS):
            await asyncio.sleep(0)
    client.disconnect()
    await asyncio.sleep(0)
    hostile.world.check()
    witness = await hostile.witness()
    await is_unharmed(witness)
    witness.disconnect()
    await asyncio.sleep(0)


async def is_unharmed(client: Client) -> None:
    part = fetched(await client.call(fetch((0, 0), topic="witness"), 12))[0]
    assert part.error_code == ErrorCode.NONE
    assert len(records_of(part)) == 3


def test_records_that_were_written_between_damaged_frames_survive_a_restart(tmp_path: Path) -> None:
    @effort(8)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        sent = data.draw(st.lists(frames(ProduceRequest, 9), min_size=3, max_size=8))
        asyncio.run(scenario(sent))

    async def scenario(sent: list[bytes]) -> None:
        nonlocal number
        number += 1
        async with World(tmp_path / str(number), {}) as world:
            good = world.connect()
            await create(good)
            for count, frame in enumerate(sent):
                bad = world.connect()
                bad.give(frame)
                await asyncio.sleep(0)
                bad.disconnect()
                assert await append(good, batch(1, size=30, first=count)) >= count
            before = fetched(await good.call(fetch((0, 0)), 12))[0].high_watermark
            await world.restart(clean=False)
            assert world.said("repaired") == []
            got = fetched(await world.connect().call(fetch((0, 0)), 12))[0]
            assert got.high_watermark == before

    number = 0
    check()
