"""Formatted log directories, as a broker and the nodes of a cluster leave them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from strandline.base.ids import uuid_text
from strandline.storage.directory import format_directory
from tests.disks import QuickDisk

CLUSTER_ID: Final = uuid_text(b"one of clusters.")
OTHER_CLUSTER_ID: Final = uuid_text(b"another cluster.")


def format_log_directory(path: Path, node_id: int, cluster_id: str = CLUSTER_ID) -> Path:
    directory_id = node_id.to_bytes(16)
    format_directory(
        QuickDisk(), str(path), cluster_id=cluster_id, node_id=node_id, directory_id=directory_id
    )
    return path
