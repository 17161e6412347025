"""`strandline format`: gives the log directories of a node their identity, once, before its first start."""

from __future__ import annotations

import argparse
import json

from strandline.base.ids import uuid_text
from strandline.cli.serving import fail, read_settings
from strandline.config import BrokerConfig, InvalidConfig
from strandline.node import launcher
from strandline.node.disk import RealDisk
from strandline.node.random import RealRandom
from strandline.storage.directory import UnusableDirectory, is_formatted

_UUID_TEXT_LENGTH = 22


def format_node(options: argparse.Namespace) -> int:
    try:
        config = BrokerConfig(read_settings(options.config))
    except (ValueError, InvalidConfig) as error:
        return fail(str(error))
    cluster_id = options.cluster_id or uuid_text(RealRandom().uuid())
    if len(cluster_id) != _UUID_TEXT_LENGTH or not cluster_id.replace("-", "").replace("_", "").isalnum():
        return fail(f"--cluster-id {cluster_id}: 22 characters, as `strandline format` makes them without it")
    done = [path for path in config.log_dirs if is_formatted(RealDisk(), path)]
    for path in done:
        present = launcher.cluster_id_of(path)
        if not options.ignore_formatted:
            return fail(f"{path} is formatted, for cluster {present}; --ignore-formatted leaves it as it is")
        if options.cluster_id is not None and present != options.cluster_id:
            return fail(f"{path} belongs to cluster {present}, not to {options.cluster_id}")
        cluster_id = present
    try:
        launcher.format_if_empty(
            config, launcher.stderr_events(node=config.node_id, level="warn"), cluster_id
        )
    except UnusableDirectory as error:
        return fail(str(error))
    except OSError as error:
        return fail(f"{error.filename or config.log_dirs[0]} cannot be formatted: {error.strerror}")
    formatted = [path for path in config.log_dirs if path not in done]
    if options.json:
        print(json.dumps({"cluster_id": cluster_id, "node_id": config.node_id, "formatted": formatted}))
        return 0
    for path in formatted:
        print(f"formatted {path} for node {config.node_id} of cluster {cluster_id}")
    print(f"Give the other nodes the same: strandline format --cluster-id {cluster_id} --config ...")
    return 0
