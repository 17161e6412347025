"""Waits for reassignments, with a bar that shows the progress of the copies."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from strandline.cli.output.progress import Progress
from strandline.cli.output.text import size

if TYPE_CHECKING:
    from strandline.base.ids import TopicPartition
    from strandline.client import Admin

_LOOK_AGAIN_S: Final = 0.5


async def wait_until_done(admin: Admin, partitions: list[TopicPartition]) -> None:
    """Waits until none of the partitions is being moved."""
    with Progress() as progress:
        while running := await admin.list_reassignments(partitions):
            there, missing = await _bytes(
                admin, list(running), {each: move.adding for each, move in running.items()}
            )
            share = 1 - missing / there if there else 0.0
            progress.bar(share, f"{len(running)} partitions, {size(missing)} to copy")
            await asyncio.sleep(_LOOK_AGAIN_S)


async def _bytes(
    admin: Admin, partitions: list[TopicPartition], adding: dict[TopicPartition, tuple[int, ...]]
) -> tuple[int, int]:
    """Returns the bytes that the new replicas will have in all, and the missing bytes, by the sizes on disk."""
    from strandline.client.errors import KafkaError

    try:
        described = await admin.describe_log_dirs(topics=sorted({each.topic for each in partitions}))
    except KafkaError:
        return 0, 0  # a broker is away: the bar stands still, and the loop goes on
    sizes: dict[int, dict[TopicPartition, int]] = {}
    for node_id, directories in described.items():
        for directory in directories:
            sizes.setdefault(node_id, {}).update(directory.replicas)
    there = missing = 0
    for each in partitions:
        largest = max((found.get(each, 0) for found in sizes.values()), default=0)
        for node_id in adding[each]:
            there += largest
            missing += max(largest - sizes.get(node_id, {}).get(each, 0), 0)
    return there, missing
