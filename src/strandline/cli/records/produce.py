"""`strandline produce`: writes records from lines, whole files or JSON rows."""

from __future__ import annotations

import argparse
import os
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Final

from strandline.cli.arguments import offset
from strandline.cli.connection import add_connection, run_async, settings_of, with_admin
from strandline.cli.exit_codes import DONE, FAILED, NOT_FOUND
from strandline.cli.failures import CommandError, say_error, usage
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import count_of, note
from strandline.cli.presets import add_preset, client_part
from strandline.cli.records.input import chunks_of, lines_of
from strandline.cli.records.rows import BadRow, Row, from_row
from strandline.cli.registry import HOW_TO_INSTALL, is_installed
from strandline.cli.schemas.connection import add_registry_option

if TYPE_CHECKING:
    from strandline.client import Producer
    from strandline.client.producer.batch import RecordPromise

# The most records that wait for their acknowledgement; more would only fill memory.
_PENDING_MAX: Final = 50_000
_FAILURES_NAMED_MAX: Final = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Sends records to a topic: each line of the files, or of stdin, is a record. If a record was not "
        "acknowledged, the exit code is 1 and the acknowledged lines are named."
    )
    parser.add_argument(
        "topic", metavar="TOPIC", help="the topic; brokers create it if auto.create.topics.enable is true"
    )
    parser.add_argument(
        "file", nargs="*", metavar="FILE", help="the files to read instead of stdin; - is stdin"
    )
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--from-json", action="store_true", help="each line is a JSON row, as `consume --json` prints it"
    )
    kind.add_argument("--whole", action="store_true", help="each whole file is one record")
    parser.add_argument(
        "--key-separator", "-K", metavar="TEXT", help="the text between key and value in a line; \\t is a tab"
    )
    parser.add_argument("--key", "-k", metavar="KEY", help="the key of every record")
    parser.add_argument(
        "--delimiter", "-D", default="\\n", metavar="TEXT", help="the text between records (default: \\n)"
    )
    parser.add_argument(
        "--header",
        "-H",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a header of every record; repeat it for several",
    )
    parser.add_argument(
        "--null", metavar="TEXT", help="a key or value that equals TEXT is null; a null value is a tombstone"
    )
    parser.add_argument(
        "--tombstone", action="store_true", help="send one record with --key and without a value"
    )
    parser.add_argument(
        "--partition", "-p", type=offset, metavar="N", help="send all records to this partition"
    )
    parser.add_argument(
        "--keep-partitions", action="store_true", help="with --from-json: send each row to its own partition"
    )
    parser.add_argument(
        "--acks",
        choices=("0", "1", "all"),
        help="the acks setting: which replicas must have a record (default: all)",
    )
    parser.add_argument(
        "--compression",
        choices=("none", "gzip", "snappy", "lz4", "zstd"),
        help="the compression of batches (default: none)",
    )
    add_preset(parser, "a group of producer settings")
    parser.add_argument("--keep-going", action="store_true", help="skip lines that are not valid, and go on")
    _add_schema(parser)
    add_connection(parser)
    add_json(
        parser,
        {
            "topic": "text",
            "sent": "number",
            "failed": "number",
            "failures": [{"file": "text", "line": "number", "error": "text"}],
        },
    )


def _add_schema(parser: argparse.ArgumentParser) -> None:
    """Adds the options for a schema of the values."""
    parser.add_argument(
        "--schema",
        metavar="FILE",
        help="values are JSON and are encoded with the schema in this file (.avsc, .json, .proto), which is "
        "registered first; `latest` stands for the latest version of the subject",
    )
    parser.add_argument("--subject", metavar="NAME", help="the subject of --schema (default: TOPIC-value)")
    parser.add_argument(
        "--type",
        choices=("AVRO", "JSON", "PROTOBUF"),
        help="the type of --schema (default: by the file's name, otherwise AVRO)",
    )
    parser.add_argument(
        "--reference",
        action="append",
        default=[],
        metavar="NAME=SUBJECT:VERSION",
        help="a schema that --schema imports under a name; repeat it for several",
    )
    add_registry_option(parser)


def call(options: argparse.Namespace) -> int:
    if options.tombstone and (options.key is None or options.file):
        raise usage("--tombstone needs --key, and takes no files")
    if options.keep_partitions and not options.from_json:
        raise usage("--keep-partitions needs --from-json")
    if options.whole and not options.file:
        raise usage("--whole needs files")
    options.encode = _encoder(options)
    if sys.stdin.isatty() and not options.file and not options.tombstone:
        note("Each line is a record; Ctrl-D ends.")
    return run_async(lambda: _produce(options), options)


def _encoder(options: argparse.Namespace) -> Callable[[bytes], bytes] | None:
    if options.schema is None:
        return None
    if not is_installed():
        raise usage(f"--schema needs more packages: {HOW_TO_INSTALL}")
    from strandline.cli.records.schema_writer import Refused, schema_writer

    try:
        return schema_writer(options)
    except Refused as error:
        raise CommandError(str(error), error.code) from None


class Sending:
    """The records that are not acknowledged yet, with the lines that they came from."""

    def __init__(self, producer: Producer, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self._pending: deque[tuple[str, int, RecordPromise]] = deque()
        self.sent_count = 0
        self.failures: list[tuple[str, int, str]] = []
        self.first_error: BaseException | None = None

    async def send(self, file: str, line: int, row: Row) -> None:
        from strandline.client.errors import KafkaError

        try:
            promise = await self._producer.send(
                self._topic, row.value, row.key, row.partition, row.timestamp_ms, row.headers or None
            )
        except (KafkaError, ValueError) as error:
            self.failed(file, line, error)
            if getattr(error, "code", None) is not None and self.sent_count == 0 and not self._pending:
                raise
            return
        self._pending.append((file, line, promise))
        if len(self._pending) >= _PENDING_MAX:
            await self.settle(_PENDING_MAX // 2)

    def failed(self, file: str, line: int, error: BaseException) -> None:
        self.first_error = self.first_error or error
        self.failures.append((file, line, str(error)))

    async def settle(self, left_max: int = 0) -> None:
        """Waits for acknowledgements until at most this number of records is not acknowledged."""
        from strandline.client.errors import KafkaError

        while len(self._pending) > left_max:
            file, line, promise = self._pending.popleft()
            try:
                await promise
                self.sent_count += 1
            except KafkaError as error:
                self.failed(file, line, error)


async def _connected(admin: Any, options: argparse.Namespace) -> int:
    return DONE


async def _produce(options: argparse.Namespace) -> int:
    from strandline.client import Producer
    from strandline.client.errors import UnknownTopicError

    settings: dict[str, Any] = {**client_part(options, "producer"), **settings_of(options, "producer")}
    settings.setdefault("max.block.ms", str(max(round(options.timeout * 1000), 1)))
    settings.setdefault("linger.ms", "5")
    settings.setdefault("batch.size", "262144")
    for key, value in (("acks", options.acks), ("compression.type", options.compression)):
        if value is not None:
            settings[key] = value
    stopped: CommandError | None = None
    await with_admin(
        options, _connected, ("topics",)
    )  # an address where no broker listens costs seconds and not the whole timeout
    async with Producer(settings) as producer:
        sending = Sending(producer, options.topic)
        try:
            async for file, line, row in _rows(options, sending):
                await sending.send(file, line, row)
        except CommandError as error:
            stopped = error
        except UnknownTopicError as error:
            raise CommandError(
                f"there is no topic {options.topic}, and the brokers do not create it: "
                f"`strandline topics create {options.topic}`",
                NOT_FOUND,
            ) from error
        await producer.flush()
        await sending.settle()
    return _report(options, sending, stopped)


def _report(options: argparse.Namespace, sending: Sending, stopped: CommandError | None) -> int:
    if options.json:
        failures = [{"file": file, "line": line, "error": text} for file, line, text in sending.failures]
        print_json(
            {
                "topic": options.topic,
                "sent": sending.sent_count,
                "failed": len(sending.failures),
                "failures": failures,
            }
        )
    for file, line, text in sending.failures[:_FAILURES_NAMED_MAX]:
        say_error(f"{file}, line {line}: {text}")
    if len(sending.failures) > _FAILURES_NAMED_MAX:
        say_error(f"and {len(sending.failures) - _FAILURES_NAMED_MAX} more (--json names them all)")
    acknowledged = f"{count_of(sending.sent_count, 'record')} acknowledged"
    if stopped is not None:
        say_error(f"{stopped}; {acknowledged} before it, nothing after it was sent (--keep-going goes on)")
        return stopped.code
    if sending.failures:
        say_error(f"{acknowledged}, {count_of(len(sending.failures), 'record')} not")
        return FAILED
    if sys.stderr.isatty() and not options.json:
        note(acknowledged)
    return DONE


async def _rows(options: argparse.Namespace, sending: Sending) -> AsyncIterator[tuple[str, int, Row]]:
    """Yields the records to send, each with its file and line."""
    headers = [_header(text) for text in options.header]
    if options.tombstone:
        yield "--tombstone", 1, Row(options.key.encode(), None, headers, options.partition)
        return
    delimiter = _unescaped(options.delimiter)
    for file in options.file or ["-"]:
        descriptor = _open(file)
        try:
            if options.whole:
                data = b"".join([each async for each in chunks_of(descriptor)])
                whole = _row(options, data, headers, file, 1, sending)
                if whole is not None:
                    yield file, 1, whole
                continue
            number = 0
            async for lines in lines_of(descriptor, delimiter):
                for line in lines:
                    number += 1
                    row = _row(options, line, headers, file, number, sending)
                    if row is not None:
                        yield file, number, row
        finally:
            if file != "-":
                os.close(descriptor)


def _row(
    options: argparse.Namespace,
    line: bytes,
    headers: list[tuple[str, bytes | None]],
    file: str,
    number: int,
    sending: Sending,
) -> Row | None:
    """Returns the record of a line; None for a line that is skipped."""
    try:
        if not options.from_json:
            return _encoded(options, _plain(options, line, headers))
        if not line.strip():
            return None
        row = _encoded(options, from_row(line))
        partition = options.partition if options.partition is not None else row.partition
        return row._replace(
            headers=row.headers + headers,
            partition=partition if options.keep_partitions or options.partition is not None else None,
        )
    except BadRow as error:
        if not options.keep_going:
            raise CommandError(f"{file}, line {number}: {error}") from error
        sending.failed(file, number, error)
        return None


def _plain(options: argparse.Namespace, line: bytes, headers: list[tuple[str, bytes | None]]) -> Row:
    key = None if options.key is None else options.key.encode()
    value: bytes | None = line
    if options.key_separator is not None and not options.whole:
        before, separator, after = line.partition(_unescaped(options.key_separator))
        if not separator:
            raise BadRow(f"no {options.key_separator!r} between key and value")
        key, value = before, after
    if options.null is not None:
        marker = options.null.encode()
        key, value = None if key == marker else key, None if value == marker else value
    return Row(key, value, headers, options.partition)


def _encoded(options: argparse.Namespace, row: Row) -> Row:
    """Returns the row, with its value encoded if there is a schema. Raises BadRow for a value that does not fit."""
    if options.encode is None or row.value is None:
        return row
    return row._replace(value=options.encode(row.value))


def _header(text: str) -> tuple[str, bytes | None]:
    key, equals, value = text.partition("=")
    if not equals:
        raise usage(f"--header {text}: write it as KEY=VALUE")
    return key, value.encode()


def _unescaped(text: str) -> bytes:
    return text.replace("\\t", "\t").replace("\\n", "\n").replace("\\0", "\0").encode()


def _open(file: str) -> int:
    try:
        return sys.stdin.fileno() if file == "-" else os.open(file, os.O_RDONLY)
    except OSError as error:
        raise usage(f"{file} cannot be read: {error.strerror}") from error
