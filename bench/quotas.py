"""Measures how well quotas hold: a producer and a consumer, each as fast as its quota allows.

    python -m bench.quotas

The figure is the mean rate over whole windows after the first one, because ten seconds' worth may be used at once.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from strandline.client.admin.topics import NewTopic
from strandline.client.sync import Admin
from strandline.testing import BrokerProcess, running_broker
from strandline.wire.api.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.record_batch import Record, build_batch
from tests.compat.wire import WireClient

WINDOW_S = 11
TOPIC = "quotas"


def produced(broker: BrokerProcess, seconds: float) -> list[tuple[float, int]]:
    """Returns the time of each response, and the bytes of its request."""
    done: list[tuple[float, int]] = []
    with WireClient(broker.bootstrap, client_id="bench") as client:
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            records = build_batch([Record(0, int(time.time() * 1000), None, b"x" * 20_000)])
            data = PartitionProduceData(index=0, records=records)
            topics = (TopicProduceData(name=TOPIC, partition_data=(data,)),)
            request = ProduceRequest(transactional_id=None, acks=1, timeout_ms=5000, topic_data=topics)
            response: Any = client.call(request, 9)
            assert response.responses[0].partition_responses[0].error_code == 0
            done.append((time.monotonic(), len(records)))
    return done


def consumed(broker: BrokerProcess, seconds: float) -> list[tuple[float, int]]:
    done: list[tuple[float, int]] = []
    with WireClient(broker.bootstrap, client_id="bench") as client:
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100_000)
            topics = (FetchTopic(topic=TOPIC, partitions=(partition,)),)
            request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=100_000, topics=topics)
            response: Any = client.call(request, 12)
            done.append((time.monotonic(), len(response.responses[0].partitions[0].records or b"")))
    return done


def mean_rate(done: list[tuple[float, int]], windows: int) -> float:
    """Returns the bytes per second over so many windows, after the first."""
    began = done[0][0] + WINDOW_S
    counted = sum(size for moment, size in done if began <= moment < began + windows * WINDOW_S)
    return counted / (windows * WINDOW_S)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, default=3, help="windows of eleven seconds that are measured")
    parser.add_argument("--rate", type=float, default=1_000_000, help="bytes a second")
    options = parser.parse_args()
    seconds = (options.windows + 1) * WINDOW_S + 1
    with running_broker() as broker:
        with Admin({"bootstrap.servers": broker.bootstrap}) as admin:
            admin.create_topics([NewTopic(TOPIC, 1)])
            entity = (("client-id", "bench"),)
            admin.alter_client_quotas(
                {entity: {"producer_byte_rate": options.rate, "consumer_byte_rate": options.rate}}
            )
        for name, run in (("producer", produced), ("consumer", consumed)):
            rate = mean_rate(run(broker, seconds), options.windows)
            off = (rate / options.rate - 1) * 100
            print(f"{name}: {rate:,.0f} bytes a second of {options.rate:,.0f}: {off:+.1f} %")


if __name__ == "__main__":
    main()
