"""The events that `mirror status` tells."""

from __future__ import annotations

import json
from typing import Any

from tests.mirror.scene import Scene


def events(scene: Scene, config: object, where: str) -> list[dict[str, Any]]:
    """Returns the events about a topic, partition or group."""
    status = scene.command("status", "--config", str(config), "--json")
    assert status.returncode == 0, status.stderr
    return [each for each in json.loads(status.stdout)["events"] if each["where"] == where]


def kinds(scene: Scene, config: object, where: str) -> list[str]:
    return [each["kind"] for each in events(scene, config, where)]
