"""Bytes that make no sense close their connection, leave one line in the log, and touch nothing else."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from strandline.testing import BrokerProcess, running_broker
from strandline.wire.api.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.compat.wire import WireClient

REQUEST_BYTES_MAX = 1_000_000


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    with running_broker(socket_request_max_bytes=str(REQUEST_BYTES_MAX)) as running:
        yield running


def header(key: int, version: int, *, flexible: bool = False) -> bytes:
    return struct.pack(">hhih", key, version, 1, 4) + b"test" + (b"\x00" if flexible else b"")


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def metadata_with_array_of(count: int) -> bytes:
    return frame(header(3, 1) + struct.pack(">i", count))


BAD = {
    "an HTTP request": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a TLS hello": bytes.fromhex("160301020001fc0303") + bytes(60),
    "a negative length": struct.pack(">i", -1),
    "a length above the limit": struct.pack(">i", REQUEST_BYTES_MAX + 1),
    "a frame of no bytes": struct.pack(">i", 0),
    "a frame shorter than a header": frame(b"\x00\x03"),
    "an unknown API key": frame(header(999, 0) + bytes(8)),
    "a negative API key": frame(header(-1, 0) + bytes(8)),
    "a removed API key": frame(header(4, 0) + bytes(8)),
    "a version that is too high": frame(header(3, 99) + bytes(8)),
    "a version that was removed": frame(header(0, 2) + bytes(8)),
    "a client id longer than the request": frame(struct.pack(">hhih", 3, 1, 1, 5000)),
    "an array above a million": metadata_with_array_of(1_000_001),
    "an array longer than the request": metadata_with_array_of(10_000),
    "an array of negative length": metadata_with_array_of(-7),
    "a null where none is allowed": frame(header(32, 1) + struct.pack(">i", -1)),
    "a string that is not UTF-8": frame(header(3, 1) + struct.pack(">ih", 1, 2) + b"\xff\xfe"),
    "a string longer than the request": frame(header(3, 1) + struct.pack(">ih", 1, 999)),
    "a truncated request": frame(header(19, 2) + struct.pack(">ih", 1, 3) + b"abc"),
    "too many tagged fields": frame(header(60, 0, flexible=True) + b"\x00" + b"\xff\xff\x7f"),
    "a tagged field beyond the end": frame(header(60, 0, flexible=True) + b"\x00" + b"\x01\x05\xff\x7f"),
    "a header tag beyond the end": frame(header(60, 0) + b"\x01\x05\xff\x7f"),
    "an endless varint": frame(header(60, 0) + b"\xff" * 12),
    "records longer than the request": frame(
        header(0, 8)
        + struct.pack(">hhi", -1, -1, 100)
        + struct.pack(">ih", 1, 1)
        + b"t"
        + struct.pack(">iii", 1, 0, 1 << 20)
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_connection_is_closed_and_the_broker_goes_on(broker: BrokerProcess, what: str) -> None:
    with WireClient(broker.bootstrap) as bystander, WireClient(broker.bootstrap) as offender:
        before = broker.log_text.count("connection closed")
        offender.socket.sendall(BAD[what])
        assert offender.is_closed_by_peer()
        answer = bystander.call(ApiVersionsRequest(), 0)
        assert isinstance(answer, ApiVersionsResponse)
        assert answer.error_code == 0
        assert broker.log_text.count("connection closed") == before + 1


def test_unknown_version_of_api_versions_gets_a_response_in_version_0(broker: BrokerProcess) -> None:
    with WireClient(broker.bootstrap) as client:
        client.send_frame(header(18, 99))
        answer = client.receive_frame()
    correlation_id, error, count, key, low, high = struct.unpack_from(">ihihhh", answer)
    assert (correlation_id, error, count) == (1, 35, 1)
    assert (key, low, high) == (18, 0, 4)


def test_pipelined_requests_get_their_responses_in_order(broker: BrokerProcess) -> None:
    with WireClient(broker.bootstrap) as client:
        for correlation_id in range(50):
            client.send_frame(struct.pack(">hhih", 18, 0, correlation_id, -1))
        answers = [struct.unpack_from(">i", client.receive_frame())[0] for _ in range(50)]
    assert answers == list(range(50))


def test_a_request_that_comes_byte_by_byte_gets_its_response(broker: BrokerProcess) -> None:
    with WireClient(broker.bootstrap) as client:
        for byte in frame(struct.pack(">hhih", 18, 0, 7, -1)):
            client.socket.sendall(bytes((byte,)))
        assert struct.unpack_from(">i", client.receive_frame())[0] == 7
