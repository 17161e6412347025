"""The list of workloads, and the size of each in a full and in a quick run."""

from __future__ import annotations

from dataclasses import dataclass

NO_CODEC = "none"
CODECS = (NO_CODEC, "gzip", "snappy", "lz4", "zstd")

LIBRDKAFKA = "librdkafka"
JAVA = "Java"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A workload: records that are written to a new topic and read back."""

    group: str
    client: str
    record_bytes: int
    partitions: int
    record_count: int
    codec: str = NO_CODEC

    @property
    def id(self) -> str:
        parts = [self.group, self.client, f"{self.record_bytes}B", f"{self.partitions}p"]
        return "/".join([*parts, self.codec] if self.group == "codec" else parts)

    @property
    def size_bytes(self) -> int:
        return self.record_bytes * self.record_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The size of a run."""

    name: str
    rounds: int
    warm_up_s: float
    # The share of a full run's records.
    share: float
    latency_s: float
    startup_rounds: int
    # How long a run waits, all in all, for other programs of the machine to end.
    patience_s: float
    startup_partitions: tuple[int, ...] = (1, 2000)


FULL = Plan(
    name="full", rounds=5, warm_up_s=180.0, share=1.0, latency_s=8.0, startup_rounds=5, patience_s=240.0
)
QUICK = Plan(
    name="quick", rounds=1, warm_up_s=60.0, share=0.4, latency_s=4.0, startup_rounds=1, patience_s=60.0
)

# Records of a full run, by client and size: some seconds of writing at the speeds that were seen.
_RECORDS = {
    LIBRDKAFKA: {100: 3_000_000, 1000: 800_000, 10_000: 90_000},
    JAVA: {100: 2_000_000, 1000: 300_000, 10_000: 40_000},
}
_CODEC_RECORDS = 120_000
# Messages are handed over by the thousand.
_STEP = 1000

LATENCY_RECORD_BYTES = 1000
LATENCY_PARTITIONS = 6
LATENCY_RATE_PER_S = 200


def workloads(share: float) -> list[Workload]:
    """Returns the workloads: 1 kB over every number of partitions, other sizes over six, each with both clients; the
    codecs."""
    shapes = [(1000, 1), (1000, 6), (1000, 100), (100, 6), (10_000, 6)]
    chosen = [
        Workload(
            group="throughput",
            client=client,
            record_bytes=record_bytes,
            partitions=partitions,
            record_count=_records(_RECORDS[client][record_bytes], share),
        )
        for client in (LIBRDKAFKA, JAVA)
        for record_bytes, partitions in shapes
    ]
    chosen += [
        Workload(
            group="codec",
            client=LIBRDKAFKA,
            record_bytes=1000,
            partitions=6,
            record_count=_records(_CODEC_RECORDS, share),
            codec=codec,
        )
        for codec in CODECS
    ]
    return chosen


def sendfile_workload(share: float) -> Workload:
    return Workload(
        group="sendfile",
        client=LIBRDKAFKA,
        record_bytes=1000,
        partitions=6,
        record_count=_records(_RECORDS[LIBRDKAFKA][1000], share),
    )


def _records(full: int, share: float) -> int:
    return max(int(full * share) // _STEP, 1) * _STEP
