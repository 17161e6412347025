"""ApiVersions is asked in versions that the broker has and in one that it lacks; its response has the oldest header."""

from __future__ import annotations

from strandline.base.errors import error_name
from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.raw_frames import framed, request_header
from strandline.lab.scenario import LabScenario
from strandline.wire.api.k18_api_versions import ApiVersionsRequest

CORRELATION_ID = (7).to_bytes(4, "big")
# ApiVersions is flexible from version 3 on: a name and a version of the client's software, without tags.
BODY = {0: b"", 2: b"", 3: b"\x04lab\x020\x00", 4: b"\x04lab\x020\x00", 99: b"\x04lab\x020\x00"}


async def play(lab: Lab) -> None:
    for version, body in BODY.items():
        client = await lab.connect_frames()
        header = request_header(ApiVersionsRequest.API_KEY, version, is_flexible=version >= 3)
        response = await client.exchange(framed(header + body)) or b""
        assert response[:4] == CORRELATION_ID
        code = int.from_bytes(response[4:6], "big")
        lab.fact(f"error at byte 4 of version {version}", error_name(code))
        client.close()
    await lab.send(10)


SCENARIO = LabScenario(
    title="The response to ApiVersions has no tagged fields in its header",
    source="Field 17: Hacker News 46955708",
    claim=(
        "A broker put tagged fields into the header of the response, as flexible responses have them. "
        "librdkafka took what came after them for a length, and asked for 34 GB of memory."
    ),
    finding=(
        "A client that asks does not know the broker's versions yet: the header has the oldest form in every "
        "version, and the body for an unknown version is that of version 0."
    ),
    play=play,
    brokers=1,
    replication_factor=1,
    producer={"acks": "all"},
    only_simulated="it looks at the bytes of responses",
    facts={
        "error at byte 4 of version 0": "NONE",
        "error at byte 4 of version 2": "NONE",
        "error at byte 4 of version 3": "NONE",
        "error at byte 4 of version 4": "NONE",
        "error at byte 4 of version 99": "UNSUPPORTED_VERSION",
    },
    expected=Outcome(acknowledged="0-9", leader=1, leader_epoch=0),
)
