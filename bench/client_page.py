"""Makes docs/benchmarks/client.md from the results of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench.aims import Aim
from bench.client_peers import AIOKAFKA, COLUMNAR, CONFLUENT, KAFKA_PYTHON, NAMES, STRANDLINE
from bench.results import Results, Spread
from bench.tables import NOTHING, markdown, with_spread

_HOW = """Every client writes and reads the same records on one Strandline broker, each in a process of its own, in
alternating rounds; figures are medians, in brackets the lowest and highest round. The application looks at every value
that it reads; the columnar client gives it tables, and it looks at the column. Producers are idempotent, with acks=all
and 5 ms of linger unless the table says otherwise. Client, broker and whatever else runs share two cores, so rates are
those of a small machine, and ratios carry further than rates."""

_LINGER = """One producer, 100 B records, 3 partitions. *Stream* is a steady 10,000 records a second: lingering makes
fewer requests of it and costs less CPU, and each record waits longer for its acknowledgement. *Full speed* sends as
fast as it can: batches are full before their linger is over, so there linger matters little, and differences between
the rows are mostly those of the machine."""
_LINGER_COLUMNS = (
    ("stream: p50 ms", "ack_p50_ms"),
    ("p99 ms", "ack_p99_ms"),
    ("records a request", "records_per_request"),
    ("CPU µs a record", "cpu_us"),
    ("full speed: records/s", "records_s"),
    ("records a request", "full_speed_records_per_request"),
    ("CPU µs a record", "full_speed_cpu_us"),
)
_EARLIER = """Some of this was measured more than once, after aims had been missed. These are the earlier figures, in
steps of which some lasted less than half a second; other programs had most of the machine both times, so a ratio near
its aim is not certain either way."""
EARLIER = "@"
_PER_RECORD = Aim(ratio=1.5, more_is_better=True)
_COLUMNAR = {
    "consume": Aim(ratio=3.0, more_is_better=True),
    "produce": Aim(ratio=2.0, more_is_better=True),
}
_ROUND_TRIP = Aim(ratio=1.5, more_is_better=False)
_AIMED_BYTES = (100, 1000)
_COLUMNAR_AIMED_BYTES = 100


def render(results: Results) -> str:
    run = results.run
    parts = [
        "# The client beside confluent-kafka, aiokafka and kafka-python\n",
        f"Made by `python -m bench.client_run` on {run['date']}, {run['rounds']} rounds.",
        _HOW + "\n",
        "## Aims\n",
        markdown(("what", "ratio", "aim", "verdict"), _aims(results)),
        _earlier(results),
        "## Throughput, records per second\n",
        markdown(("", *NAMES), _throughput(results)),
        "CPU time of the client, microseconds a record:\n",
        markdown(("", *NAMES), _cost(results)),
        "## Round trip\n",
        "200 records of 100 B a second at random gaps, linger 0, producer and consumer in one process. Strandline's",
        "share one loop; confluent-kafka's have a thread each, and one more that waits for delivery reports.\n",
        markdown(("ms", STRANDLINE, CONFLUENT), _round_trip(results)),
        "## Linger\n",
        _LINGER + "\n",
        markdown(("linger.ms", *(title for title, _ in _LINGER_COLUMNS)), _linger(results)),
        "## Memory\n",
        "The highest that the process had above what it had before the first record (1 kB records). The producer sends",
        "as fast as it can, which reaches its limit only where the broker is slower; the consumer's application sleeps",
        "until the client has fetched what it may: once the setting in the buffer, and once in a response.\n",
        markdown(("", "configured", "peak above start", "of the configured"), _memory(results)),
        "## How it was measured\n",
        (
            f"First use of the columnar kernels with an empty cache, compilation included: {run['compilation_s']:.1f}"
            " s, once after an installation; it is in none of the figures above."
        ),
        _machine(run),
        _parts(results),
        (
            f"Other programs used up to {_others(results):.1f} cores during a step, {_others_middle(results):.1f} in"
            " the median. Every sample is in [client.json](client.json)."
        ),
        "",
    ]
    return "\n".join(parts)


def keep_as_earlier(results: Results, scenario: str) -> None:
    """Keeps the figures of a scenario before it is measured again, so that no figures vanish because they were bad."""
    told = results.scenarios.pop(scenario)
    name = f"{scenario}{EARLIER}{told.get('revision', results.run['revision'])}"
    results.scenarios[name] = told
    results.samples = [
        replace(each, scenario=name) if each.scenario == scenario else each for each in results.samples
    ]


def _earlier(results: Results) -> str:
    """Returns the aims' ratios in earlier measurements."""
    rows = []
    for name, told in results.scenarios.items():
        if EARLIER in name and told.get("what") in _COLUMNAR:
            what, size = told["what"], told["record_bytes"]
            spread = results.ratio(name, "records_s", COLUMNAR, CONFLUENT)
            columnar = _COLUMNAR[what] if size == _COLUMNAR_AIMED_BYTES else None
            revision = name.partition(EARLIER)[2]
            per_record = _cells(_against_faster(results, name), _PER_RECORD if size in _AIMED_BYTES else None)
            rows.append([f"{what} {size} B, per record, revision {revision}", *per_record])
            rows.append(
                [
                    f"{what} {size} B, columnar, revision {revision}",
                    *_cells(spread and spread.median, columnar),
                ]
            )
    if not rows:
        return ""
    return f"{_EARLIER}\n\n" + markdown(("earlier", "ratio", "aim", "verdict"), rows)


def _sizes(results: Results) -> list[int]:
    return sorted(
        {told["record_bytes"] for told in results.scenarios.values() if told.get("what") in _COLUMNAR}
    )


def _aims(results: Results) -> list[list[str]]:
    rows = []
    for what in ("produce", "consume"):
        for size in _sizes(results):
            ratio = _against_faster(results, f"{what}-{size}")
            aim = _PER_RECORD if size in _AIMED_BYTES else None
            told = f"{what} {size} B, per record, to the faster of aiokafka and kafka-python"
            rows.append([told, *_cells(ratio, aim)])
        for size in _sizes(results):
            spread = results.ratio(f"{what}-{size}", "records_s", COLUMNAR, CONFLUENT)
            aim = _COLUMNAR[what] if size == _COLUMNAR_AIMED_BYTES else None
            told = f"{what} {size} B, columnar, to confluent-kafka"
            rows.append([told, *_cells(spread and spread.median, aim)])
    for figure, told in (("ack", "send to acknowledgement"), ("receive", "send to consumer")):
        spread = results.ratio("round-trip", f"{figure}_p99_ms", STRANDLINE, CONFLUENT)
        rows.append(
            [f"round trip p99, {told}, to confluent-kafka", *_cells(spread and spread.median, _ROUND_TRIP)]
        )
    return rows


def _cells(ratio: float | None, aim: Aim | None) -> list[str]:
    if ratio is None:
        return [NOTHING] * 3
    return [f"{ratio:.2f}×", str(aim) if aim else NOTHING, aim.verdict(ratio) if aim else NOTHING]


def _against_faster(results: Results, scenario: str) -> float | None:
    peers = [results.spread(scenario, name, "records_s") for name in (AIOKAFKA, KAFKA_PYTHON)]
    ours = results.spread(scenario, STRANDLINE, "records_s")
    found = [each.median for each in peers if each is not None]
    return ours.median / max(found) if ours is not None and found else None


def _throughput(results: Results) -> list[list[str]]:
    return [
        [f"{what} {size} B", *(_rate(results.spread(f"{what}-{size}", name, "records_s")) for name in NAMES)]
        for what in ("produce", "consume")
        for size in _sizes(results)
    ]


def _rate(spread: Spread | None) -> str:
    return NOTHING if spread is None else f"{spread.median:,.0f} ({spread.low:,.0f}–{spread.high:,.0f})"


def _cost(results: Results) -> list[list[str]]:
    return [
        [
            f"{what} {size} B",
            *(with_spread(results.spread(f"{what}-{size}", name, "cpu_us")) for name in NAMES),
        ]
        for what in ("produce", "consume")
        for size in _sizes(results)
    ]


def _round_trip(results: Results) -> list[list[str]]:
    return [
        [
            f"{told}, {label}",
            *(
                with_spread(results.spread("round-trip", name, f"{figure}_{label}_ms"))
                for name in (STRANDLINE, CONFLUENT)
            ),
        ]
        for figure, told in (("ack", "send to acknowledgement"), ("receive", "send to consumer"))
        for label in ("p50", "p99")
    ]


def _linger(results: Results) -> list[list[str]]:
    rows = []
    for name, told in results.scenarios.items():
        if name.startswith("linger-") and EARLIER not in name:
            cells = [with_spread(results.spread(name, STRANDLINE, figure)) for _, figure in _LINGER_COLUMNS]
            rows.append([str(told["linger_ms"]), *cells])
    return rows


def _memory(results: Results) -> list[list[str]]:
    rows = []
    for name, told in results.scenarios.items():
        spread = results.spread(name, STRANDLINE, "peak_bytes")
        if spread is not None and EARLIER not in name:
            configured = told["buffer_bytes"]
            setting = (
                "producer, buffer.memory" if told["what"] == "produce-memory" else "consumer, fetch.max.bytes"
            )
            peak = f"{spread.median / 2**20:.0f} MiB ({spread.low / 2**20:.0f}–{spread.high / 2**20:.0f})"
            share = f"{spread.median / configured:.1f}×"
            rows.append([setting, f"{configured / 2**20:.0f} MiB", peak, share])
    return rows


def _others(results: Results) -> float:
    return max(sample.figures["others_cores"] for sample in results.samples)


def _others_middle(results: Results) -> float:
    ordered = sorted(sample.figures["others_cores"] for sample in results.samples)
    return ordered[len(ordered) // 2]


def _parts(results: Results) -> str:
    """Returns the parts that were measured again after the run."""
    run = results.run
    again = [
        f"{name} (revision {told['revision']}, {told['rounds']} rounds)"
        for name, told in results.scenarios.items()
        if told.get("revision", run["revision"]) != run["revision"] and EARLIER not in name
    ]
    return f"Measured once more later: {', '.join(again)}." if again else "All of it is one run."


def _machine(run: dict[str, Any]) -> str:
    facts = run["machine"]
    return (
        f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB, Linux {facts['kernel']}, "
        f"Python {facts['python']}, uvloop {facts['uvloop']}, confluent-kafka {facts['confluent_kafka']} on librdkafka "
        f"{facts['librdkafka']}. Revision {run['revision']}."
    )
