"""`strandline perf latency`: measures the time of a record from its send to its arrival at a consumer."""

from __future__ import annotations

import argparse
import time
from typing import Any

from strandline.cli.arguments import whole_number
from strandline.cli.connection import add_connection, run_async, settings_of, with_admin
from strandline.cli.exit_codes import DONE
from strandline.cli.failures import CommandError
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.progress import Progress
from strandline.cli.perf.figures import LATENCY_SHAPE, SHAPE, Meter, latency_document, line_of
from strandline.cli.topics.names import existing_topic


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Sends records one by one and reads each back before the next, as Kafka's EndToEndLatency does. The records "
        "stay in the topic."
    )
    parser.add_argument("topic", metavar="TOPIC", help="an existing topic to which no other producer writes")
    parser.add_argument(
        "--records", "-n", type=whole_number, default=1000, help="the number of records (default: 1000)"
    )
    parser.add_argument(
        "--size",
        type=whole_number,
        default=100,
        metavar="BYTES",
        help="the size of each record (default: 100)",
    )
    parser.add_argument(
        "--acks", choices=("0", "1", "all"), default="all", help="the acks setting (default: all)"
    )
    add_connection(parser)
    add_json(parser, {**SHAPE, **LATENCY_SHAPE})


def call(options: argparse.Namespace) -> int:
    return run_async(lambda: _measure(options))


async def _measure(options: argparse.Namespace) -> int:
    from strandline.client import Consumer, Producer

    async def check(admin: Any, _: argparse.Namespace) -> int:
        await existing_topic(admin, options.topic)
        return DONE

    await with_admin(options, check, ("topics",))
    settings: dict[str, Any] = {"acks": options.acks, "linger.ms": "0"}
    if options.acks != "all":
        settings["enable.idempotence"] = "false"
    times: list[float] = []
    async with (
        Producer({**settings, **settings_of(options, "producer")}) as producer,
        Consumer({"enable.auto.commit": "false", **settings_of(options, "consumer")}) as consumer,
    ):
        partitions = await consumer.partitions_for(options.topic)
        consumer.assign(partitions)
        for partition, offset in (await consumer.end_offsets(partitions)).items():
            consumer.seek(partition, offset)
        with Progress() as progress:
            meter = Meter(options.records, progress)
            for number in range(options.records):
                value = str(number).encode().ljust(options.size, b".")
                began = time.perf_counter()
                await producer.send(options.topic, value)
                found = await consumer.poll(options.timeout)
                if not found or found[-1].value != value:
                    what = (
                        "did not arrive"
                        if not found
                        else "was not the next one: other producers write to the topic"
                    )
                    raise CommandError(f"record {number} {what}")
                times.append(time.perf_counter() - began)
                meter.add(1, len(value))
            document = meter.document() | latency_document(times)
    if options.json:
        print_json(document)
    else:
        print(line_of(document))
    return DONE
