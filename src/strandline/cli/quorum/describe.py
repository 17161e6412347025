"""`strandline quorum describe` shows the voters and observers of the metadata quorum."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.connection import add_connection, run
from strandline.cli.exit_codes import DONE
from strandline.cli.output.document import add_json, print_json
from strandline.cli.output.text import show, table

if TYPE_CHECKING:
    from strandline.client import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Shows the controllers' quorum: its leader, its voters and observers, and the lag of each."
    )
    add_connection(parser)
    replica = {
        "node_id": "number",
        "directory_id": "text",
        "log_end_offset": "number",
        "lag": "number",
        "last_fetch": "number",
        "last_caught_up": "number",
    }
    add_json(
        parser,
        {
            "leader": "number",
            "leader_epoch": "number",
            "high_watermark": "number",
            "voters": [replica],
            "observers": [replica],
        },
    )


def call(options: argparse.Namespace) -> int:
    return run(options, _describe, "cluster")


async def _describe(admin: Admin, options: argparse.Namespace) -> int:
    import time

    from strandline.base.ids import uuid_text

    quorum = await admin.describe_quorum()
    end = max((each.log_end_offset for each in quorum.voters), default=0)
    document = {
        role: [
            {
                "node_id": each.replica_id,
                "directory_id": uuid_text(each.directory_id),
                "log_end_offset": each.log_end_offset,
                "lag": max(end - each.log_end_offset, 0),
                "last_fetch": each.last_fetch_ms,
                "last_caught_up": each.last_caught_up_ms,
            }
            for each in replicas
        ]
        for role, replicas in (("voters", quorum.voters), ("observers", quorum.observers))
    }
    if options.json:
        head = {
            "leader": quorum.leader_id,
            "leader_epoch": quorum.leader_epoch,
            "high_watermark": quorum.high_watermark,
        }
        print_json({**head, **document})
        return DONE
    print(f"leader {quorum.leader_id}, epoch {quorum.leader_epoch}, high watermark {quorum.high_watermark}")
    now_ms = time.time() * 1000
    rows = [
        (
            each["node_id"],
            "leader" if each["node_id"] == quorum.leader_id else role.removesuffix("s"),
            each["log_end_offset"],
            each["lag"],
            f"{max(now_ms - int(str(each['last_caught_up'])), 0) / 1000:.1f} s ago"
            if int(str(each["last_caught_up"])) > 0
            else None,
            each["directory_id"],
        )
        for role, replicas in document.items()
        for each in replicas
    ]
    show(table(("NODE", "ROLE", "END", "LAG", "CAUGHT UP", "DIRECTORY ID"), rows))
    return DONE
