"""Writes the topic and files for clicks.yaml. `python examples/pipelines/clicks_data.py [BOOTSTRAP] [HISTORY]`"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from strandline.client.sync import Admin, Producer

BEGIN = datetime(2026, 1, 1, 12, tzinfo=UTC)
USERS = ("ann", "ben", "cat")


def click(number: int, user: str, minute: float) -> dict[str, str]:
    at = BEGIN + timedelta(minutes=minute)
    return {"click_id": f"k-{number}", "user": user, "page": f"/{number % 7}", "at": at.isoformat()}


def history() -> list[dict[str, str]]:
    """Returns the clicks of three users, each of whom clicks six times within ten minutes."""
    return [click(number, USERS[number % 3], number // 3 * 2) for number in range(18)]


def live() -> list[dict[str, str]]:
    """Returns the end of that session again, as after a restart of the program that collects clicks; another session an
    hour later; and hours later one click that closes them all."""
    later = [click(100 + number, USERS[number % 3], 70 + number // 3 * 2) for number in range(9)]
    return [*history()[-3:], *later, click(200, "dan", 600)]


def fill(bootstrap: str, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(each) + "\n" for each in history())
    (directory / "clicks.jsonl").write_text(lines + "no click\n")
    with Admin(bootstrap_servers=bootstrap) as admin, Producer(bootstrap_servers=bootstrap) as producer:
        admin.create_topic("clicks", partitions=2)
        for each in live():
            producer.send("clicks", json.dumps(each).encode(), each["user"].encode())


if __name__ == "__main__":
    fill(
        sys.argv[1] if len(sys.argv) > 1 else "localhost:9092",
        Path(sys.argv[2] if len(sys.argv) > 2 else "examples/pipelines/history"),
    )
