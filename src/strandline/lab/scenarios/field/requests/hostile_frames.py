"""Frames that announce more than they have: sizes, arrays and tagged fields."""

from __future__ import annotations

import tracemalloc

from strandline.lab.lab import Lab
from strandline.lab.outcome import Outcome
from strandline.lab.raw_frames import CLOSED, framed, request_header
from strandline.lab.scenario import LabScenario

HUGE = b"\x7f\xff\xff\xff"
HUGE_COMPACT = b"\xff\xff\xff\xff\x07"
FRAMES = {
    "a frame of 2 GiB": HUGE,
    "a frame of a negative size": b"\xff\xff\xff\xfe",
    "Metadata of 2,147,483,647 topics": framed(request_header(3, 8, is_flexible=False) + HUGE),
    "Metadata of 2,147,483,646 topics, compact": framed(
        request_header(3, 12, is_flexible=True) + HUGE_COMPACT
    ),
    "a header of 2,147,483,647 tagged fields": framed(
        request_header(3, 12, is_flexible=False) + HUGE_COMPACT
    ),
    "a tagged field of 2 GiB": framed(request_header(3, 12, is_flexible=False) + b"\x01\x00" + HUGE_COMPACT),
    "Produce of a topic name that is longer than the frame": framed(
        request_header(0, 8, is_flexible=False) + b"\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\xff"
    ),
    "a request of an unknown API": framed(request_header(9999, 0, is_flexible=False)),
}
MEMORY_BYTES_MAX = 4 * 1024 * 1024


async def play(lab: Lab) -> None:
    await lab.send(10)
    costly = []
    tracemalloc.start()
    for name, frame in FRAMES.items():
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        client = await lab.connect_frames()
        response = await client.exchange(frame)
        client.close()
        lab.fact(name, CLOSED if response is None else f"a response of {len(response)} bytes")
        if tracemalloc.get_traced_memory()[1] - before > MEMORY_BYTES_MAX:
            costly.append(name)
    tracemalloc.stop()
    lab.fact("frames that cost more than 4 MiB", ", ".join(costly) or "none")
    await lab.send(10)


SCENARIO = LabScenario(
    title="Hostile frames are refused before memory is allocated for them",
    source="Field 18: notes of Kafka 4.4",
    claim=(
        "A few bytes announce an array of two thousand million elements, and the broker allocates memory for "
        "them before it looks whether they are there."
    ),
    finding="Each connection is closed, no frame costs more than 4 MiB, and the broker serves others.",
    play=play,
    brokers=1,
    replication_factor=1,
    producer={"acks": "all"},
    only_simulated="it measures the broker's memory",
    facts={**dict.fromkeys(FRAMES, CLOSED), "frames that cost more than 4 MiB": "none"},
    expected=Outcome(acknowledged="0-19", leader=1, leader_epoch=0),
)
