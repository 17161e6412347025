"""`strandline sizing`: computes partitions, brokers, disk, network, memory and CPU for a workload, and shows the
arithmetic."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import Any, Final

from strandline.cli.arguments import duration_ms, whole_number
from strandline.cli.failures import usage
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import show, size

# A partition carries 10 to 50 MB/s, and should have 10 to 100 GB, because it is copied as a whole when a broker is
# replaced.
_PARTITION_MB_S: Final = 10.0
_PARTITION_GB: Final = 50.0
# A fuller disk leaves no room for the absence of a broker or a peak.
_DISK_SHARE_MAX: Final = 0.7
_NETWORK_SHARE_MAX: Final = 0.7
# A broker can have 2,000 to 4,000 partitions, all replicas counted.
_PARTITIONS_PER_BROKER: Final = (2000, 4000)
# Readers with a lag up to this time are still served from the page cache.
_CACHED_S: Final = 30
_MB_S_PER_CORE: Final = 50.0
_BROKER_MEMORY_GB: Final = 6
# Usual machines have 32 to 64 GB, mostly for the page cache, and 8 to 16 cores.
_MEMORY_GB_MIN: Final = 32
_CORES_MIN: Final = 8

# Replication factor, min.insync.replicas and acks by use case.
USES: Final = {
    "critical": (3, 2, "all", "payments, orders: nothing acknowledged may be lost"),
    "standard": (3, 2, "all", "events between services"),
    "metrics": (2, 1, "1", "metrics and logs: a lost second is no harm"),
    "development": (1, 1, "1", "one machine, nothing to lose"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedWorkload:
    """The load of a workload."""

    write_mb_s: float
    read_mb_s: float
    consumers: int
    retention_s: float
    replication_factor: int
    partition_mb_s: float
    partition_gb: float
    disk_gb: float
    network_mb_s: float
    key_count: int | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Computes how many partitions and brokers a workload needs, and how much disk, network, memory and CPU, and "
        "shows the arithmetic. No cluster is asked. `strandline perf` measures the rate of one partition on your "
        "machines."
    )
    parser.add_argument(
        "--write", type=_rate, required=True, metavar="MB/S", help="the rate that producers write at the peak"
    )
    parser.add_argument(
        "--read",
        type=_rate,
        metavar="MB/S",
        help="the rate that all groups read together (default: every group reads everything)",
    )
    parser.add_argument(
        "--groups",
        type=whole_number,
        default=1,
        metavar="N",
        help="the number of groups that read everything (default: 1)",
    )
    parser.add_argument(
        "--consumers",
        type=whole_number,
        default=1,
        metavar="N",
        help="the number of consumers in the largest group (default: 1)",
    )
    parser.add_argument(
        "--retention",
        type=duration_ms,
        default=604_800_000,
        metavar="TIME",
        help="the retention of records (default: 7d)",
    )
    parser.add_argument(
        "--use",
        choices=tuple(USES),
        default="critical",
        help="the use case, which sets replicas and acks (default: critical)",
    )
    parser.add_argument(
        "--replication-factor",
        type=whole_number,
        metavar="N",
        help="the replication factor (default: that of the use case)",
    )
    _add_machines(parser)
    add_json(
        parser,
        {
            "partitions": "number",
            "brokers": "number",
            "replication_factor": "number",
            "min_insync_replicas": "number",
            "acks": "text",
            "disk_bytes": "number",
            "disk_bytes_per_broker": "number",
            "network_in_mb_s_per_broker": "number",
            "network_out_mb_s_per_broker": "number",
            "memory_gb_per_broker": "number",
            "cores_per_broker": "number",
            "arithmetic": ["text"],
        },
    )


def _add_machines(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say how much a partition and a broker carry."""
    parser.add_argument(
        "--partition-rate",
        type=_rate,
        default=_PARTITION_MB_S,
        metavar="MB/S",
        help="the rate of one partition: 10 to 50 (default: 10)",
    )
    parser.add_argument(
        "--partition-size",
        type=_rate,
        default=_PARTITION_GB,
        metavar="GB",
        help="the size of one partition: 10 to 100 (default: 50)",
    )
    parser.add_argument(
        "--keys",
        type=whole_number,
        metavar="N",
        help="the number of different keys; partitions beyond that number would be idle",
    )
    parser.add_argument(
        "--disk", type=_rate, default=2000.0, metavar="GB", help="the disk of a broker (default: 2000)"
    )
    parser.add_argument(
        "--network",
        type=_rate,
        default=1250.0,
        metavar="MB/S",
        help="the network of a broker (default: 1250, that is 10 Gbit/s)",
    )


def _rate(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < 1e9:
        raise argparse.ArgumentTypeError(f"{text} is not a rate or size: give a number above 0")
    return found


def call(options: argparse.Namespace) -> int:
    replicas, minimum, acks, why = USES[options.use]
    if options.replication_factor is not None:
        replicas = options.replication_factor
        minimum = max(1, min(minimum, replicas))
    if options.retention <= 0:
        raise usage("--retention: give a time above 0, such as 7d")
    workload = SizedWorkload(
        write_mb_s=options.write,
        read_mb_s=options.read if options.read is not None else options.write * options.groups,
        consumers=options.consumers,
        retention_s=options.retention / 1000,
        replication_factor=replicas,
        partition_mb_s=options.partition_rate,
        partition_gb=options.partition_size,
        disk_gb=options.disk,
        network_mb_s=options.network,
        key_count=options.keys,
    )
    result = plan(workload)
    document = {
        **result,
        "replication_factor": replicas,
        "min_insync_replicas": minimum,
        "acks": acks,
    }
    if options.json:
        print_json(document)
        return 0
    each = (
        f"{size(result['disk_bytes_per_broker'])} of records, {result['memory_gb_per_broker']} GB memory, "
        f"{result['cores_per_broker']} cores, {result['network_in_mb_s_per_broker']:.0f} MB/s in, "
        f"{result['network_out_mb_s_per_broker']:.0f} MB/s out"
    )
    lines = [
        f"{result['partitions']} partitions on {result['brokers']} brokers",
        f"  replication.factor={replicas}  min.insync.replicas={minimum}  acks={acks}   ({options.use}: {why})",
        f"  each broker: {each}",
        "",
        "How it is computed:",
        *(f"  {line}" for line in result["arithmetic"]),
    ]
    show(lines)
    return 0


def plan(work: SizedWorkload) -> dict[str, Any]:
    """Returns the numbers for a workload, with the sentences of the arithmetic."""
    by_rate = math.ceil(work.write_mb_s / work.partition_mb_s)
    data_gb = work.write_mb_s * work.retention_s / 1000
    by_size = math.ceil(data_gb / work.partition_gb)
    partitions = max(by_rate, work.consumers, by_size)
    says = [
        f"partitions by throughput: {work.write_mb_s:g} MB/s / {work.partition_mb_s:g} MB/s each = {by_rate}",
        f"partitions by consumers: {work.consumers}, one each at least",
        (
            f"partitions by size: {work.write_mb_s:g} MB/s x {work.retention_s:g} s = {data_gb:,.0f} GB "
            f"/ {work.partition_gb:g} GB each = {by_size}"
        ),
        f"partitions = the largest of them = {partitions}",
    ]
    if work.key_count is not None and partitions > work.key_count:
        says.append(
            f"only {work.key_count} keys: {partitions - work.key_count} partitions would be idle for keyed records"
        )
    factor = work.replication_factor
    disk_bytes = work.write_mb_s * 1e6 * work.retention_s * factor
    by_disk = math.ceil(disk_bytes / (work.disk_gb * 1e9 * _DISK_SHARE_MAX))
    traffic_in = work.write_mb_s * factor
    traffic_out = work.read_mb_s + work.write_mb_s * (factor - 1)
    by_network = math.ceil(max(traffic_in, traffic_out) / (work.network_mb_s * _NETWORK_SHARE_MAX))
    by_count = math.ceil(partitions * factor / _PARTITIONS_PER_BROKER[1])
    brokers = max(by_disk, by_network, by_count, factor)
    says += [
        f"disk: {work.write_mb_s:g} MB/s x {work.retention_s:g} s x {factor} replicas = {size(disk_bytes)}",
        f"brokers by disk: {size(disk_bytes)} / (70 % of {work.disk_gb:g} GB) = {by_disk}",
        (
            f"network in: {work.write_mb_s:g} MB/s x {factor} = {traffic_in:g} MB/s; "
            f"out: {work.read_mb_s:g} to readers + {work.write_mb_s:g} x {factor - 1} to followers "
            f"= {traffic_out:g} MB/s"
        ),
        f"brokers by network: {max(traffic_in, traffic_out):g} MB/s / (70 % of {work.network_mb_s:g}) = {by_network}",
        (
            f"brokers by partitions: {partitions * factor} replicas / {_PARTITIONS_PER_BROKER[1]} a broker "
            f"(2,000 to 4,000) = {by_count}"
        ),
        f"brokers = the largest of them, and {factor} for {factor} replicas = {brokers}",
    ]
    written = traffic_in / brokers
    cached_gb = written * _CACHED_S / 1000
    memory_gb = max(_BROKER_MEMORY_GB + math.ceil(cached_gb), _MEMORY_GB_MIN)
    cores = max(_CORES_MIN, math.ceil((traffic_in + traffic_out) / brokers / _MB_S_PER_CORE))
    says += [
        (
            f"memory: {_BROKER_MEMORY_GB} GB + page cache for {_CACHED_S} s of {written:.0f} MB/s, at least "
            f"{_MEMORY_GB_MIN} = {memory_gb} GB a broker"
        ),
        (
            f"CPU: {(traffic_in + traffic_out) / brokers:.0f} MB/s a broker / {_MB_S_PER_CORE:g} MB/s a core, at least "
            f"{_CORES_MIN} = {cores} cores"
        ),
    ]
    return {
        "partitions": partitions,
        "brokers": brokers,
        "disk_bytes": round(disk_bytes),
        "disk_bytes_per_broker": round(disk_bytes / brokers),
        "network_in_mb_s_per_broker": traffic_in / brokers,
        "network_out_mb_s_per_broker": traffic_out / brokers,
        "memory_gb_per_broker": memory_gb,
        "cores_per_broker": cores,
        "arithmetic": says,
    }
