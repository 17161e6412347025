"""Measures one step of throughput: a client writes and reads a new topic on a peer; the CPU time of both is taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from bench import payloads, topics
from bench.clients import Client, Done, Work
from bench.machine import prime_page_cache
from bench.measure import OthersMeter, UsageMeter
from bench.peers import Peer
from bench.scenarios import Workload

Figures = dict[str, float]


class Throughput:
    """Runs workloads with files below `scratch`, which is on the disk of the peers."""

    def __init__(self, scratch: Path, clients: Mapping[str, Client]) -> None:
        self._scratch = scratch
        self._clients = clients
        self._topic_number = 0

    def step(self, peer: Peer, workload: Workload) -> Figures:
        self._topic_number += 1
        topic = f"bench{self._topic_number}"
        topics.create(peer, topic, partitions=workload.partitions)
        figures = self._write_and_read(peer, workload, topic)
        topics.delete(peer, topic)
        return figures

    def _write_and_read(self, peer: Peer, workload: Workload, topic: str) -> Figures:
        client = self._clients[workload.client]
        work = Work(
            bootstrap=peer.bootstrap,
            topic=topic,
            partitions=workload.partitions,
            record_count=workload.record_count,
            record_bytes=workload.record_bytes,
            payloads=self._payloads(workload),
            codec=workload.codec,
        )
        prime_page_cache(self._scratch, workload.size_bytes)
        others = OthersMeter(peer.pid, *client.pids())
        figures = _measured("produce", client.produce, work, peer)
        stored = topics.log_bytes(peer, topic)
        figures["stored_bytes"] = stored
        figures["compression"] = workload.size_bytes / stored
        figures |= _measured("consume", client.consume, work, peer)
        figures["others_cores"] = others.read()
        return figures

    def _payloads(self, workload: Workload) -> Path:
        kind = "compressible" if workload.group == "codec" else "incompressible"
        path = self._scratch / f"{kind}-{workload.record_bytes}.txt"
        if not path.exists():
            make = payloads.compressible if workload.group == "codec" else payloads.incompressible
            payloads.write_lines(path, make(workload.record_bytes))
        return path


def _measured(what: str, act: Callable[[Work], Done], work: Work, peer: Peer) -> Figures:
    """Returns the figures of a step. Rates count the bytes of the records' values, before a codec compresses them."""
    meter = UsageMeter(peer.pid)
    done = act(work)
    broker = meter.read()
    size_bytes = work.record_bytes * done.record_count
    # The meters ran for all records, also those that the client does not count.
    broker_cpu_s = broker.cpu_s * done.record_count / work.record_count
    return {
        f"{what}_s": done.elapsed_s,
        f"{what}_mb_s": size_bytes / 1e6 / done.elapsed_s,
        f"{what}_records_s": done.record_count / done.elapsed_s,
        f"{what}_broker_cpu_s_gb": broker_cpu_s / (size_bytes / 1e9),
        f"{what}_client_cpu_s_gb": done.cpu_s / (size_bytes / 1e9),
        f"{what}_broker_cores": broker_cpu_s / done.elapsed_s,
        f"{what}_client_cores": done.cpu_s / done.elapsed_s,
        f"{what}_broker_thread_share": broker.busiest_thread_s / done.elapsed_s,
        f"{what}_client_thread_share": done.busiest_thread_s / done.elapsed_s,
    }
