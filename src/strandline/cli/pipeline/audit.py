"""`strandline pipeline audit`: checks that the log holds the acknowledged records."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from strandline.cli.arguments import count
from strandline.cli.output.document import add_json

_CANNOT = 2


def add_parser(actions: Any) -> argparse.ArgumentParser:
    """Adds the parser of this action and returns it."""
    parser: argparse.ArgumentParser = actions.add_parser(
        "audit",
        help="compare a ledger of acknowledged records with what topics hold",
        description="Compares a ledger of what producers were told with what topics hold, on Spark: what is lost, "
        "duplicated, misplaced or out of order. A row of the ledger has the columns id, topic, partition and offset, "
        "and for the order key and sequence. Exits with 1 if something is wrong and with 2 if it cannot be known.",
    )
    parser.add_argument(
        "ledger", metavar="LEDGER", help="JSON lines or Parquet: a file or directory; or topic:NAME"
    )
    parser.add_argument(
        "--bootstrap-server", default="localhost:9092", metavar="HOST:PORT", help="(default: localhost:9092)"
    )
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="TOPIC",
        help="look for the ids in this topic, wherever it has them, such as the one that a pipeline writes; may be "
        "repeated (default: the ledger's topics, at the acknowledged offsets)",
    )
    parser.add_argument(
        "--id",
        default="cast(value as string)",
        metavar="SQL",
        help="a record's id, as an expression over key, value and headers (default: the value as text)",
    )
    parser.add_argument(
        "--isolation-level",
        choices=("read_committed", "read_uncommitted"),
        default="read_committed",
        help="(default: read_committed)",
    )
    parser.add_argument(
        "--ignore-order",
        action="store_true",
        help="do not look at sequences, where the order need not be kept",
    )
    parser.add_argument(
        "--samples", type=count, default=5, metavar="N", help="samples of each kind (default: 5)"
    )
    parser.add_argument(
        "--master", default="local[*]", metavar="URL", help="where Spark runs (default: local[*])"
    )
    parser.add_argument(
        "--spark",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of Spark; may be repeated",
    )
    add_json(
        parser,
        {
            "held": "flag",
            "topics": ["text"],
            "acknowledged": "number",
            "read": "number",
            "<kind of damage>": "number",
            "order_checked": "flag",
            "partitions": {"<partition>": {"<kind of damage>": "number"}},
            "samples": {"<kind of damage>": [{"<field>": "any"}]},
        },
    )
    return parser


def call(options: argparse.Namespace) -> int:
    """Runs the action and returns the exit status."""
    from strandline.pipeline.audit.audit import Audit, run_audit
    from strandline.pipeline.plan.spark_errors import root_reason_of
    from strandline.pipeline.runtime.session import start_session

    audit = Audit(
        ledger=options.ledger,
        bootstrap_servers=options.bootstrap_server,
        topics=tuple(options.topic),
        record_id=options.id,
        isolation_level=options.isolation_level,
        with_order=not options.ignore_order,
        samples=options.samples,
    )
    settings = dict(each.partition("=")[::2] for each in options.spark)
    why = _why_no_spark(options.master, options.spark)
    if why is not None:
        print(f"strandline: {why}", file=sys.stderr)
        return _CANNOT
    try:
        spark = start_session("strandline audit", options.master, settings)
        try:
            report = run_audit(spark, audit)
        finally:
            spark.stop()
    except Exception as error:
        # Spark's errors carry the whole stack of a JVM, and that of Python too.
        print(f"strandline: the audit cannot be made: {root_reason_of(error)}", file=sys.stderr)
        return _CANNOT
    print(json.dumps(report.as_json()) if options.json else report.as_text())
    return 0 if report.held else 1


def _why_no_spark(master: str, settings: list[str]) -> str | None:
    """Returns what is wrong with where and how Spark is to run, before it starts; None if nothing is."""
    from strandline.pipeline.spec.spark_settings import why_no_master, why_no_setting

    why = why_no_master(master)
    if why is not None:
        return f"--master {why}"
    for each in settings:
        name, sign, value = each.partition("=")
        why = why_no_setting(name, value) if sign else "must be KEY=VALUE"
        if why is not None:
            return f"--spark {name} {why}"
    return None
