"""`strandline perf produce`: measures how many records a second can be written to a cluster."""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from typing import Any, Final

from strandline.cli.arguments import whole_number
from strandline.cli.connection import add_connection, run_async, settings_of, with_admin
from strandline.cli.exit_codes import DONE
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.progress import Progress
from strandline.cli.perf.figures import LATENCY_SHAPE, SHAPE, Meter, latency_document, line_of
from strandline.cli.topics.names import existing_topic

# The records between two readings of the clock: the measurement must not slow down the work.
_ROUND: Final = 500
# The latency of one record in this number is kept.
_SAMPLE: Final = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Writes records of random bytes into a topic as fast as the cluster accepts them, or at --rate, with the "
        "client of this package. The latency is the time from the send to the acknowledgement, of one record in a "
        "hundred."
    )
    parser.add_argument("topic", metavar="TOPIC", help="an existing topic")
    parser.add_argument(
        "--records",
        "-n",
        type=whole_number,
        default=1_000_000,
        help="the number of records (default: 1000000)",
    )
    parser.add_argument(
        "--size",
        type=whole_number,
        default=100,
        metavar="BYTES",
        help="the size of each record (default: 100)",
    )
    parser.add_argument(
        "--rate", type=whole_number, metavar="N", help="the records to write in a second (default: no limit)"
    )
    parser.add_argument(
        "--acks", choices=("0", "1", "all"), default="all", help="the acks setting (default: all)"
    )
    parser.add_argument(
        "--compression", default="none", metavar="CODEC", help="the codec: none, gzip, snappy, lz4 or zstd"
    )
    add_connection(parser)
    add_json(parser, {**SHAPE, **LATENCY_SHAPE})


def call(options: argparse.Namespace) -> int:
    return run_async(lambda: _produce(options), options)


async def _produce(options: argparse.Namespace) -> int:
    from strandline.client import Producer
    from strandline.client.errors import KafkaError

    async def check(admin: Any, _: argparse.Namespace) -> int:
        await existing_topic(admin, options.topic)
        return DONE

    await with_admin(options, check, ("topics",))
    settings: dict[str, Any] = {
        "acks": options.acks,
        "compression.type": options.compression,
        "linger.ms": "5",
    }
    if options.acks != "all":
        settings["enable.idempotence"] = "false"
    settings |= settings_of(options, "producer")
    value = os.urandom(options.size)
    times: list[float] = []
    waiting: set[asyncio.Task[None]] = set()
    failed: list[KafkaError] = []

    async def sample(result: Any) -> None:
        began = time.perf_counter()
        try:
            await result
        except KafkaError as error:  # many records fail for one reason: the first error is reported
            failed.append(error)
        else:
            times.append(time.perf_counter() - began)

    async with Producer(settings) as producer:
        with Progress() as progress:
            meter = Meter(options.records, progress)
            while meter.records < options.records and not failed:
                count = min(_ROUND, options.records - meter.records)
                for number in range(count):
                    result = await producer.send(options.topic, value)
                    if number % _SAMPLE == 0:
                        task = asyncio.ensure_future(sample(result))
                        waiting.add(task)
                        task.add_done_callback(waiting.discard)
                meter.add(count, count * options.size)
                if options.rate:
                    await asyncio.sleep(max(meter.records / options.rate - meter.seconds, 0))
            await producer.flush()
            document = meter.document()
        await asyncio.gather(*waiting)
        if failed:
            raise failed[0]
    document |= latency_document(times)
    if options.json:
        print_json(document)
    else:
        print(line_of(document))
    return DONE
