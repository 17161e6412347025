"""The demo's picture: nothing in it lies over something else, however close events are."""

from __future__ import annotations

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

PATH = Path(__file__).parents[3] / "examples" / "demo_picture.py"


def picture_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo_picture", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["demo_picture"] = module  # its dataclasses look it up
    spec.loader.exec_module(module)
    return module


def timeline(module: ModuleType, times: list[float]) -> Any:
    return module.Timeline(
        acknowledged=dict.fromkeys(range(120), 500),
        leaders=[module.Led(at=0.0, partition=0, broker=1), module.Led(at=30.0, partition=0, broker=2)],
        batches=[
            module.Batch(number=0, driver=1, began=20.0, ended=29.0, records=5000),
            module.Batch(number=1, driver=1, began=29.0, ended=31.0, records=0, is_killed=True),
            module.Batch(number=1, driver=2, began=45.0, ended=60.0, records=9000),
        ],
        events=[(at, f"event at {at}") for at in times],
        ended=61.0,
    )


def test_numbers_of_events_move_aside_where_they_would_meet() -> None:
    module = picture_module()
    drawn = ElementTree.fromstring(module.as_svg(timeline(module, [30.0, 30.1, 30.2, 31.0, 55.0])))
    circles = [each for each in drawn.iter() if each.tag.endswith("circle")]
    above = sorted(float(each.get("cx", 0)) for each in circles if float(each.get("cy", 0)) < 52)
    assert len(above) == 5
    radius = float(circles[0].get("r", 0))
    assert all(right - left >= 2 * radius for left, right in pairwise(above))
    below = sorted(float(each.get("cy", 0)) for each in circles if float(each.get("cy", 0)) > 52)
    assert all(lower - upper >= 2 * radius for upper, lower in pairwise(below))


def test_the_terminal_s_rows_have_one_width_and_every_event() -> None:
    module = picture_module()
    text = module.as_text(timeline(module, [30.0, 30.0, 30.0]))
    rows = [line for line in text.splitlines() if line.endswith("│")]
    assert {len(row) for row in rows} == {len(rows[0])}
    assert [row.split("│")[0].strip() for row in rows] == [
        "acks/s",
        "orders-0",
        "driver 1",
        "driver 2",
        "events",
    ]
    events = rows[-1]
    assert [circle in events for circle in "①②③"] == [True, True, True]
    assert "x" in rows[2], "the batch that was killed"
    assert rows[2].count("●") == 1
    assert "1" in rows[1]
    assert "2" in rows[1]
