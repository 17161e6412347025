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
        help="compare a ledger of acknowledged records with the records in topics",
        description="Compares a ledger of acknowledged records with the records in topics, on Spark, and finds "
        "records that are lost, duplicated, misplaced or out of order. A row of the ledger has the columns id, "
        "topic, partition and offset, and key and sequence to check the order. The exit code is 1 if something "
        "is wrong, and 2 if the audit cannot run.",
    )
    parser.add_argument(
        "ledger",
        metavar="LEDGER",
        help="the ledger: a file or directory of JSON lines or Parquet, or topic:NAME",
    )
    parser.add_argument(
        "--bootstrap-server",
        default="localhost:9092",
        metavar="HOST:PORT",
        help="addresses of the cluster (default: localhost:9092)",
    )
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="TOPIC",
        help="look for the ids anywhere in this topic, for example the output of a pipeline; repeat it for several "
        "(default: the ledger's topics, at the acknowledged offsets)",
    )
    parser.add_argument(
        "--id",
        default="cast(value as string)",
        metavar="SQL",
        help="the id of a record, as an SQL expression over key, value and headers (default: the value as text)",
    )
    parser.add_argument(
        "--isolation-level",
        choices=("read_committed", "read_uncommitted"),
        default="read_committed",
        help="which records are read (default: read_committed)",
    )
    parser.add_argument(
        "--ignore-order",
        action="store_true",
        help="do not check the order",
    )
    parser.add_argument(
        "--samples",
        type=count,
        default=5,
        metavar="N",
        help="the number of samples of each kind of mistake (default: 5)",
    )
    parser.add_argument(
        "--master", default="local[*]", metavar="URL", help="the Spark master (default: local[*])"
    )
    parser.add_argument(
        "--spark",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of Spark; repeat it for several",
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
        # Spark's errors have the whole stack of a JVM, and that of Python too.
        print(f"strandline: the audit cannot be made: {root_reason_of(error)}", file=sys.stderr)
        return _CANNOT
    print(json.dumps(report.as_json()) if options.json else report.as_text())
    return 0 if report.held else 1


def _why_no_spark(master: str, settings: list[str]) -> str | None:
    """Returns the mistake in the master or the settings of Spark, before it starts; None if there is none."""
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
