"""`strandline probe`: writes a record, reads it back and commits its offset, again and again, and reports the times. It
works with any cluster, Strandline's or Apache Kafka's, and serves its figures to Prometheus.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from strandline.cli.arguments import port, seconds
from strandline.cli.connection import add_connection, settings_of
from strandline.cli.exit_codes import FAILED
from strandline.cli.failures import CommandError, exit_code_of, say_error
from strandline.cli.output.document import add_json

if TYPE_CHECKING:
    from strandline.client import Consumer, Producer
    from strandline.telemetry.exposition import Family
    from strandline.telemetry.histogram import Histogram

STEPS: Final = ("produce", "read_back", "commit")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Produces a record with acks=all, reads it back and commits its offset, again and again until Ctrl-C, or "
        "--count times. A record that is not read back within --timeout counts as lost, and the exit code is 1."
    )
    parser.add_argument(
        "--topic", default="strandline-probe", help="the topic of the probe (default: strandline-probe)"
    )
    parser.add_argument(
        "--group", default="strandline-probe", help="the group of the probe (default: strandline-probe)"
    )
    parser.add_argument(
        "--interval",
        type=seconds,
        default=1.0,
        metavar="SECONDS",
        help="the time between two records (default: 1)",
    )
    parser.add_argument(
        "--count", type=int, default=0, metavar="N", help="end after this number of records (default: never)"
    )
    parser.add_argument(
        "--metrics-port", type=port, help="serve /metrics for Prometheus on this port; 0 takes a free port"
    )
    add_connection(parser, timeout_s=10.0)
    add_json(
        parser,
        {
            "partition": "text",
            "offset": "number",
            "produce_ms": "number",
            "read_back_ms": "number",
            "commit_ms": "number",
        },
        lines=True,
    )


def call(options: argparse.Namespace) -> int:
    from strandline.client.errors import KafkaError

    try:
        return asyncio.run(Probe(options).run())
    except KafkaError as error:
        say_error(error)
        return exit_code_of(error)
    except OSError as error:
        raise CommandError(str(error)) from error


class Probe:
    """The probe and its figures."""

    def __init__(self, options: argparse.Namespace) -> None:
        from strandline.telemetry.histogram import Histogram

        self._options = options
        self.sent = self.lost = self.failed = 0
        self.times: dict[str, Histogram] = {step: Histogram() for step in STEPS}

    async def run(self) -> int:
        from strandline.client import Consumer, Producer
        from strandline.client.errors import KafkaError
        from strandline.node.http.metrics_page import metrics_handler
        from strandline.node.http.server import HttpServer

        options = self._options
        server = HttpServer(
            metrics_handler(self._families), lambda error: print(f"strandline: {error!r}", file=sys.stderr)
        )
        if options.metrics_port is not None:
            await server.listen("localhost", options.metrics_port)
            print(f"metrics are at http://localhost:{server.port}/metrics", file=sys.stderr, flush=True)
        try:
            async with (
                Producer({**settings_of(options, "producer"), "acks": "all"}) as producer,
                Consumer(
                    settings_of(options, "consumer"),
                    group_id=options.group,
                    auto_offset_reset="latest",
                    enable_auto_commit=False,
                ) as consumer,
            ):
                while True:
                    try:
                        await self._once(producer, consumer)
                    except (KafkaError, TimeoutError) as error:
                        self.failed += 1
                        print(f"strandline: {error or 'it took too long'}", file=sys.stderr, flush=True)
                    if self.sent + self.failed >= options.count > 0:
                        return FAILED if self.lost or self.failed else 0
                    await asyncio.sleep(options.interval)
        finally:
            server.close()

    async def _once(self, producer: Producer, consumer: Consumer) -> None:
        """Writes one record, reads it back at its offset, and commits that."""
        from strandline.client import TopicPartition

        options = self._options
        value = f"{time.time_ns()}".encode()
        began = time.perf_counter()
        written = await asyncio.wait_for(await producer.send(options.topic, value), options.timeout)
        took = {"produce": time.perf_counter() - began}
        where = TopicPartition(written.topic, written.partition)
        if where not in consumer.assignment():
            consumer.assign([*consumer.assignment(), where])
            consumer.seek(where, written.offset)
        # Otherwise its fetch waits for this record already: a seek would have to wait until that fetch is over.
        self.sent += 1
        began = time.perf_counter()
        found = None
        with suppress(TimeoutError):
            found = await asyncio.wait_for(self._read(consumer, value), options.timeout)
        took["read_back"] = time.perf_counter() - began
        if found is None:
            self.lost += 1
            print(
                f"strandline: LOST {where} offset {written.offset} was not read back",
                file=sys.stderr,
                flush=True,
            )
            return
        began = time.perf_counter()
        await asyncio.wait_for(consumer.commit({where: written.offset + 1}), options.timeout)
        took["commit"] = time.perf_counter() - began
        for step, seconds_taken in took.items():
            self.times[step].observe(seconds_taken)
        self._say(str(where), written.offset, took)

    @staticmethod
    async def _read(consumer: Consumer, value: bytes) -> bool:
        while True:
            record = await consumer.getone()
            if record.value == value:
                return True

    def _say(self, where: str, offset: int, took: dict[str, float]) -> None:
        ms = {step: round(taken * 1000, 2) for step, taken in took.items()}
        if self._options.json:
            print(
                json.dumps({"partition": where, "offset": offset, **{f"{k}_ms": v for k, v in ms.items()}}),
                flush=True,
            )
        else:
            print(
                f"{where} {offset}: produced in {ms['produce']} ms, read back in {ms['read_back']} ms, "
                f"committed in {ms['commit']} ms",
                flush=True,
            )

    def _families(self) -> list[Family]:
        from strandline.broker.telemetry.times import histogram_family
        from strandline.telemetry.exposition import counter, labels

        found = [(labels(step=step), times) for step, times in self.times.items()]
        return [
            counter("strandline_probe_records_total", "Records that were written.", self.sent),
            counter("strandline_probe_lost_total", "Records that were written and not read back.", self.lost),
            counter("strandline_probe_failed_total", "Rounds that failed.", self.failed),
            histogram_family("strandline_probe_seconds", "How long the steps took.", found),
        ]
