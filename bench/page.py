"""Writes docs/benchmarks/broker.md and its charts from broker.json: `python -m bench.page`.

Every figure on the page is computed from the results; only the aims and published figures of Kafka are quoted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from bench import aims, charts, java_clients, librdkafka
from bench.aims import PUBLISHED_FIGURES, aim_for
from bench.charts import Bar, Group, grouped_bars
from bench.latency import percentiles
from bench.measure import OTHERS_CORES_MAX
from bench.peers import KAFKA, KAFKA_SETTINGS, SAME_SETTINGS, STRANDLINE, WITHOUT_SENDFILE
from bench.results import DIRECTORY, FILE_NAME, Results, Spread
from bench.scenarios import LATENCY_PARTITIONS, LATENCY_RATE_PER_S, LATENCY_RECORD_BYTES
from bench.tables import (
    DISTURBED,
    NOTHING,
    SATURATED_SHARE,
    compared,
    held_back_by,
    label,
    markdown,
    ratio_text,
    with_spread,
)
from tests.oracle.apache_kafka import AS_SHIPPED

NAME = "broker.md"
_PEERS = (STRANDLINE, KAFKA)
_NAMES = ("Strandline", "Apache Kafka")
_COMPARED = (*_NAMES, "ratio", "aim", "verdict")


def write(results: Results, directory: Path = DIRECTORY) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files(results).items():
        (directory / name).write_text(text)


def files(results: Results) -> dict[str, str]:
    """Returns the page and its charts, by name."""
    return {NAME: _page(results), **_charts(results)}


def _page(results: Results) -> str:
    sections = (
        _head(results),
        _aims(results),
        _throughput(results, "produce", "Writing"),
        _throughput(results, "consume", "Reading"),
        _cpu(results),
        _codecs(results),
        _sendfile(results),
        _latency(results),
        _memory_and_start(results),
        _seeds(results),
        _method(results),
    )
    return "\n".join(section for section in sections if section)


def _head(results: Results) -> str:
    run = results.run
    kafka = run["machine"]["kafka"]
    caution = (
        " **This was a quick run: Kafka's code was not fully compiled yet, which makes Strandline look better.**"
        if run["mode"] != "full"
        else ""
    )
    return (
        "# Strandline beside Apache Kafka\n\n"
        f"<!-- Written by `python -m bench.page` from {FILE_NAME}; `make bench` measures again. -->\n\n"
        f"Strandline at revision {run['revision']} and Apache Kafka {kafka}, measured in one run on "
        f"{run['date']} ({run['mode']} mode, {_count(run.get('rounds_done', 0), 'round')}, "
        f"{_count(run.get('duration_s', 0) // 60, 'minute')}). A figure is the median of the rounds with the lowest "
        "and the highest in brackets; a ratio is "
        "Strandline's figure through Kafka's of the same round, so it suffers less from noise than the figures do."
        f"{caution}\n"
    )


def _workloads(results: Results, group: str) -> list[str]:
    return [name for name, told in results.scenarios.items() if told["group"] == group]


def _scenarios_of(results: Results, figure: str) -> list[str]:
    """Returns the scenarios of a figure with an aim; codecs and sendfile have tables of their own."""
    found = dict.fromkeys(sample.scenario for sample in results.samples if figure in sample.figures)
    return [name for name in found if name.split("/")[0] not in ("codec", "sendfile")]


def _aims(results: Results) -> str:
    asked = (
        ("produce, 1 kB", aims.PRODUCE_RATE, 1000),
        ("produce, 100 B", aims.PRODUCE_RATE, 100),
        ("consume", aims.CONSUME_RATE, None),
        ("broker CPU per GB produced", aims.PRODUCE_CPU, None),
        ("broker CPU per GB consumed", aims.CONSUME_CPU, None),
        ("end-to-end latency, p99", aims.LATENCY_P99, None),
        ("memory, idle", aims.IDLE_MEMORY, None),
        ("memory, after load", aims.LOADED_MEMORY, None),
        ("start to first acknowledged record", aims.FIRST_ACK, None),
    )
    rows = []
    for title, figure, record_bytes in asked:
        names = [
            name
            for name in _scenarios_of(results, figure)
            if record_bytes in (None, results.scenarios.get(name, {}).get("record_bytes"))
        ]
        by_client: dict[str, list[str]] = {}
        for name in names:
            by_client.setdefault(results.scenarios.get(name, {}).get("client", ""), []).append(name)
        for client, chosen in by_client.items():
            rows.append(_aim_row(results, f"{title}, {client}" if client else title, figure, chosen))
    return (
        "## The aims\n\n"
        "Each is a ratio to a warmed-up Apache Kafka. Where several workloads have the same aim the ratios are "
        "those of the worst and the best; the tables below have each.\n\n"
        + markdown(("aim", "to reach", "worst", "best", "met in", "verdict"), rows)
    )


def _aim_row(results: Results, title: str, figure: str, names: Sequence[str]) -> list[str]:
    ratios = []
    for name in names:
        aim = aim_for(figure, results.scenarios.get(name, {}))
        ratio = results.ratio(name, figure, STRANDLINE, KAFKA)
        if aim is not None and ratio is not None:
            ratios.append((ratio.median, aim))
    if not ratios:
        return [title, *[NOTHING] * 5]
    aim = ratios[0][1]
    ordered = sorted((ratio for ratio, _ in ratios), reverse=not aim.more_is_better)
    met = sum(aim.is_met(ratio) for ratio in ordered)
    verdict = "met" if met == len(ordered) else aim.verdict(ordered[0])
    return [title, str(aim), f"{ordered[0]:.2f}×", f"{ordered[-1]:.2f}×", f"{met} of {len(ordered)}", verdict]


def _throughput(results: Results, what: str, title: str) -> str:
    names = _workloads(results, "throughput")
    if not names:
        return ""
    cores = results.run["machine"]["cores"]
    conditions = ", acks=all and idempotent" if what == "produce" else ""
    rows = [
        [
            label(results, name),
            *compared(results, name, f"{what}_mb_s"),
            " / ".join(held_back_by(results, name, peer, what, cores) for peer in _PEERS),
        ]
        for name in names
    ]
    return (
        f"## {title}\n\n![{title}, MB/s]({what}.svg)\n\n"
        f"MB of record values in a second{conditions}. The last column says what had nothing left to "
        "give, for Strandline and for Kafka: a thread of the client or of the broker that was on a processor for "
        f"{SATURATED_SHARE:.0%} of the time, or all cores together; otherwise both sides waited for each other.\n\n"
        + markdown(("workload, MB/s", *_COMPARED, "held back by"), rows)
    )


def _cpu(results: Results) -> str:
    names = _workloads(results, "throughput")
    if not names:
        return ""
    text = "## Processor time\n\n![Broker CPU seconds per GB](cpu.svg)\n\n"
    for what in ("produce", "consume"):
        rows = [
            [
                label(results, name),
                *compared(results, name, f"{what}_broker_cpu_s_gb"),
                *(with_spread(results.spread(name, peer, f"{what}_client_cpu_s_gb")) for peer in _PEERS),
            ]
            for name in names
        ]
        header = (f"{what}: broker CPU s per GB", *_COMPARED, "client (Strandline)", "client (Kafka)")
        text += markdown(header, rows) + "\n"
    return text


def _codecs(results: Results) -> str:
    names = _workloads(results, "codec")
    if not names:
        return ""
    rows = [
        [
            results.scenarios[name]["codec"],
            *(with_spread(results.spread(name, STRANDLINE, "compression")).split(" ")[:1]),
            *(
                cell
                for figure in ("produce_mb_s", "consume_mb_s", "produce_broker_cpu_s_gb")
                for cell in (
                    *(with_spread(results.spread(name, peer, figure)) for peer in _PEERS),
                    ratio_text(results.ratio(name, figure, STRANDLINE, KAFKA)).split(" ")[0],
                )
            ),
            with_spread(results.spread(name, STRANDLINE, "produce_client_cpu_s_gb")),
        ]
        for name in names
    ]
    told = results.scenarios[names[0]]
    header = (
        *("codec", "compression", "produce MB/s: Strandline", "Kafka", "ratio"),
        *("consume MB/s: Strandline", "Kafka", "ratio"),
        *("broker CPU s per GB produced: Strandline", "Kafka", "ratio", "client CPU s per GB produced"),
    )
    return (
        f"## Codecs\n\nOrders in JSON, {told['record_bytes']} B × {told['partitions']} partitions, {told['client']}. "
        "GB are of record values before compression. Both brokers decompress what they "
        "receive to check each record.\n\n" + markdown(header, rows)
    )


def _sendfile(results: Results) -> str:
    names = _workloads(results, "sendfile")
    if not names:
        return ""
    rows = [
        [
            title,
            with_spread(results.spread(name, STRANDLINE, figure)),
            with_spread(results.spread(name, WITHOUT_SENDFILE, figure)),
            ratio_text(results.ratio(name, figure, STRANDLINE, WITHOUT_SENDFILE)),
        ]
        for name in names
        for title, figure in (("MB/s", "consume_mb_s"), ("broker CPU s per GB", "consume_broker_cpu_s_gb"))
    ]
    return (
        "## sendfile against pread\n\nStrandline alone, reading "
        f"{label(results, names[0])}: records from the page cache by `sendfile`, or read into memory and sent.\n\n"
        + markdown(("consume", "sendfile", "pread and send", "ratio"), rows)
    )


def _latency(results: Results) -> str:
    if not results.latencies_us:
        return ""
    rows = [[f"{name}, ms", *compared(results, "latency", f"{name}_ms")] for name in ("p50", "p99", "p99.9")]
    pooled = {peer: percentiles(sorted(values)) for peer, values in results.latencies_us.items()}
    for name in ("p99", "p99.9"):
        ours, theirs = (pooled[peer][f"{name}_ms"] for peer in _PEERS)
        both = f"{name} of all rounds together, ms"
        rows.append(
            [both, charts.short(ours), charts.short(theirs), f"{ours / theirs:.2f}×", NOTHING, NOTHING]
        )
    counts = ", ".join(f"{len(values):,}" for values in results.latencies_us.values())
    return (
        "## Latency\n\n![End-to-end latency](latency.svg)\n\n"
        f"From `produce` to the consumer's hands: {LATENCY_RECORD_BYTES} B records, {LATENCY_RATE_PER_S} a second at "
        f"random moments over {LATENCY_PARTITIONS} partitions, librdkafka on both ends, linger.ms 0, acks=all, "
        f"idempotent; {counts} records.\n\n" + markdown(("percentile", *_COMPARED), rows)
    )


def _memory_and_start(results: Results) -> str:
    rows = [
        [f"memory idle, {_partitions(name)}, MB", *compared(results, name, aims.IDLE_MEMORY)]
        for name in _scenarios_of(results, aims.IDLE_MEMORY)
    ]
    rows += [
        ["memory after load, MB", *compared(results, name, aims.LOADED_MEMORY)]
        for name in _scenarios_of(results, aims.LOADED_MEMORY)
    ]
    rows += [
        [
            f"start to first acknowledged record, {_partitions(name)}, s",
            *compared(results, name, aims.FIRST_ACK),
        ]
        for name in _scenarios_of(results, aims.FIRST_ACK)
    ]
    return (
        "## Memory and start\n\n![Memory](memory.svg)\n\n![Start](start.svg)\n\n"
        "Memory is the proportional set size: pages that several processes share are divided among them. Starts are "
        "of a data directory with these partitions, each with a record in it, after a clean stop; the client is a "
        "socket that repeats one Produce request until it is acknowledged.\n\n"
        + markdown(("", *_COMPARED), rows)
    )


def _partitions(scenario: str) -> str:
    return _count(int(scenario.rpartition("/")[2].rstrip("p")), "partition")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _seeds(results: Results) -> str:
    rows = []
    for published in PUBLISHED_FIGURES:
        cells = []
        for peer in _PEERS:
            seen = [
                spread.median * published.scale
                for name in _scenarios_of(results, published.figure)
                if (spread := results.spread(name, peer, published.figure)) is not None
            ]
            told = "–".join(dict.fromkeys((charts.short(min(seen)), charts.short(max(seen))))) if seen else ""
            cells.append(f"{told} {published.unit}" if told else NOTHING)
        rows.append([published.metric, published.said, *cells])
    machine = results.run["machine"]
    return (
        "## Beside published figures\n\nThese were published of a single broker in production (Kreps 2013; Wang "
        f"et al. 2015), on machines and with clients of their own. Here the client shares {machine['cores']} cores "
        "with the broker; the range is over all workloads of this page.\n\n"
        + markdown(("metric", "published", *(f"{name} here" for name in _NAMES)), rows)
    )


def _method(results: Results) -> str:
    run = results.run
    machine = run["machine"]
    warm_up = ", ".join(f"{name} {told['duration_s']} s" for name, told in run["warm_up"].items())
    trace = ", ".join(
        charts.short(value) for value in run["warm_up"].get(KAFKA, {}).get("broker_cpu_s_gb", [])
    )
    listed = "; ".join(f"`{key}={value}`" for key, value in librdkafka.PRODUCER.items())
    reading = "; ".join(f"`{key}={value}`" for key, value in librdkafka.CONSUMER.items())
    java = "; ".join(f"`{key}={value}`" for key, value in java_clients.PRODUCER.items())
    same = ", ".join(f"`{key}={value}`" for key, value in SAME_SETTINGS.items())
    own = ", ".join(f"`{key}={value}`" for key, value in KAFKA_SETTINGS.items())
    return f"""## How it was measured

- Machine: {machine["cpu"]}, {machine["cores"]} cores, {machine["memory_gib"]} GiB of memory, \
{"a virtual machine, " if machine["virtual"] else ""}Linux {machine["kernel"]}, {machine["filesystem"]}. Both peers \
keep their data on the same disk.
- Strandline: Python {machine["python"]}, uvloop {machine["uvloop"]}. Apache Kafka {machine["kafka"]}: \
{machine["java"]}, `{" ".join(AS_SHIPPED)}`. Both have their default settings, except {same} (a topic's disk space is \
free as soon as it is measured) and, for Kafka, {own} (its controller would fence it after a pause).
- Rounds alternate: in each, every workload runs on both peers, one right after the other, and the first of one round \
is the second of the next. The peer that is not measured is stopped by SIGSTOP \
as soon as it is idle.
- Warm-up before anything counts: {warm_up}, with the throughput workloads of both clients. Kafka's \
CPU seconds per GB that the Java client wrote to 6 partitions fell meanwhile: {trace or NOTHING}.
- Before a topic is written, as much page cache as it will take is written and freed. A virtual machine gives free \
memory back to its host, and taking it again costs several times the write itself; the peer that got such pages would \
look slow.
- Other programs may run on the machine. A step waits for them to end, and a pair of steps during which they used more \
than {OTHERS_CORES_MAX:g} cores is repeated up to twice and the calmest counts, until the run's patience is used up. \
A workload whose median round was still disturbed is marked {DISTURBED}.
- librdkafka {machine["librdkafka"]} through confluent-kafka {machine["confluent_kafka"]}, one process. Producing: \
{listed}; records go to the partitions in turn, as evenly spread keys would send them, a thousand in one call of \
`produce_batch`; the first thousand are acknowledged before the clock starts, because getting a producer id takes \
librdkafka up to half a second. Consuming: {reading}; partitions are assigned from offset 0.
- Java clients {machine["kafka"]}, warm JVMs with `{" ".join(java_clients.JVM_OPTIONS)}`. Producing: \
ProducerPerformance with {java} and payloads from a file, so that it does not make them while it is measured. \
Consuming: a reader that assigns partitions, with the settings of ConsumerPerformance.
- CPU is user and system time of all threads from /proc; what the kernel does for nobody in particular (writing back \
to disk) is in neither.
- Raw data: [{FILE_NAME}]({FILE_NAME}).
"""


def _charts(results: Results) -> dict[str, str]:
    found = {}
    names = _workloads(results, "throughput")
    for what, title in (("produce", "Writing"), ("consume", "Reading")):
        found[f"{what}.svg"] = grouped_bars(
            title, "MB/s; longer is better", _NAMES, _groups(results, names, f"{what}_mb_s")
        )
    cpu = [
        Group(label=f"{what}: {group.label}", bars=group.bars)
        for what in ("produce", "consume")
        for group in _groups(results, names, f"{what}_broker_cpu_s_gb")
    ]
    found["cpu.svg"] = grouped_bars("Broker CPU", "seconds per GB; shorter is better", _NAMES, cpu)
    found["latency.svg"] = grouped_bars(
        "End-to-end latency",
        "ms; shorter is better",
        _NAMES,
        [Group(label=name, bars=_bars(results, "latency", f"{name}_ms")) for name in ("p50", "p99", "p99.9")],
    )
    memory = [
        Group(label=f"idle, {_partitions(name)}", bars=_bars(results, name, aims.IDLE_MEMORY))
        for name in _scenarios_of(results, aims.IDLE_MEMORY)
    ]
    memory.append(Group(label="after load", bars=_bars(results, "memory", aims.LOADED_MEMORY)))
    found["memory.svg"] = grouped_bars("Memory (PSS)", "MB; shorter is better", _NAMES, memory)
    start = [
        Group(label=_partitions(name), bars=_bars(results, name, aims.FIRST_ACK))
        for name in _scenarios_of(results, aims.FIRST_ACK)
    ]
    found["start.svg"] = grouped_bars(
        "Start to first acknowledged record", "seconds; shorter is better", _NAMES, start
    )
    return found


def _groups(results: Results, names: Sequence[str], figure: str) -> list[Group]:
    return [
        Group(
            label=label(results, name).replace(" partitions", "").replace(" partition", ""),
            bars=_bars(results, name, figure),
        )
        for name in names
    ]


def _bars(results: Results, scenario: str, figure: str) -> list[Bar | None]:
    return [_bar(results.spread(scenario, peer, figure)) for peer in _PEERS]


def _bar(spread: Spread | None) -> Bar | None:
    return None if spread is None else Bar(value=spread.median, low=spread.low, high=spread.high)


def main() -> int:
    write(Results.read(DIRECTORY / FILE_NAME))
    print(f"wrote {NAME} and its charts")
    return 0


if __name__ == "__main__":
    sys.exit(main())
