"""`make demo` in a small size: its two kills happen, its verdict is that everything held, and its picture is there.

In `make soak`, because it takes minutes; what it is made of is tested piece by piece in `make test`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"
RUN_SECONDS_MAX = 1500


@pytest.mark.skipif(
    os.environ.get("STRANDLINE_SOAK") != "1", reason="long: set STRANDLINE_SOAK=1, or run make demo"
)
@pytest.mark.timeout(RUN_SECONDS_MAX + 60)  # three JVMs one after the other, on a machine that may be busy
def test_the_demo_holds(tmp_path: Path) -> None:
    picture = tmp_path / "timeline.svg"
    command = [sys.executable, str(DEMO), "--records", "1000", "--picture", str(picture)]
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=RUN_SECONDS_MAX, check=False, cwd=tmp_path
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert "1,000 acknowledged, 1,000 out, 0 lost, 0 duplicated" in ran.stdout
    assert ran.stdout.count("kill -9: ") == 2
    assert ran.stdout.rstrip().endswith("VERDICT: held")
    drawn = ElementTree.parse(picture).getroot()
    texts = [each.text or "" for each in drawn.iter() if each.tag.endswith("text")]
    assert sum(text.startswith("kill -9") for text in texts) == 2
