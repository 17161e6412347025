from __future__ import annotations

from strandline.config.keys.broker import BROKER_KEYS, DYNAMIC_ONLY_KEYS
from strandline.config.keys.topic import TOPIC_KEYS
from strandline.config.reference import render_reference


def test_every_documented_key_has_exactly_one_row() -> None:
    lines = render_reference().splitlines()
    for keys, others in ((BROKER_KEYS, TOPIC_KEYS), (TOPIC_KEYS, BROKER_KEYS), (DYNAMIC_ONLY_KEYS, {})):
        for name, key in keys.items():
            rows = [line for line in lines if line.startswith(f"| `{name}` |")]
            assert len(rows) == (0 if key.internal else 2 if name in others else 1), name


def test_a_row_says_type_default_bounds_change_effect_and_meaning() -> None:
    lines = render_reference().splitlines()
    (row,) = [line for line in lines if line.startswith("| `log.segment.bytes` |")]
    assert row == (
        "| `log.segment.bytes` | int | `1073741824` (1 GiB) | at least 1048576 | cluster-wide | **active** "
        "| Size at which a segment is full and the next begins. |"
    )


def test_a_topic_key_names_where_its_default_comes_from() -> None:
    lines = render_reference().splitlines()
    (row,) = [line for line in lines if line.startswith("| `retention.ms` |")]
    assert "`604800000` (7 d)" in row
    assert "`log.retention.ms`, `log.retention.minutes`, `log.retention.hours`" in row


def test_every_row_has_as_many_cells_as_its_head() -> None:
    for line in render_reference().splitlines():
        if line.startswith("|"):
            assert line.replace("\\|", "").count("|") == 8, line


def test_the_page_is_the_same_every_time() -> None:
    assert render_reference() == render_reference()
