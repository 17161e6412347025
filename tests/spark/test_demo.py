"""`make demo` in a small size: its two kills happen, its verdict is that everything held, and its picture is there.

In `make soak`, because it takes minutes; what it is made of is tested piece by piece in `make test`.
"""

from __future__ import annotations

import os
import re
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
    command = [sys.executable, str(DEMO), "--rate", "100", "--picture", str(picture)]
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=RUN_SECONDS_MAX, check=False, cwd=tmp_path
    )
    said = ran.stdout
    assert ran.returncode == 0, said[-3000:] + ran.stderr[-3000:]
    verdict = re.search(r"^([\d,]+) acknowledged, ([\d,]+) out, 0 lost, 0 duplicated", said, re.MULTILINE)
    assert verdict is not None
    assert verdict.group(1) == verdict.group(2)
    assert said.rstrip().endswith("VERDICT: held")
    killed = [float(at) for at in re.findall(r"^[①-⑨] +([\d.]+) s  kill -9: ", said, re.MULTILINE)]
    ended = re.search(r"^[①-⑨] +([\d.]+) s  the orders end", said, re.MULTILINE)
    assert len(killed) == 2
    assert ended is not None
    assert max(killed) < float(ended.group(1)), "orders flow while somebody is killed"
    rates = re.findall(r"orders acknowledged, ([\d,]+) a second; Spark's driver is being started", said)
    assert rates, "orders flow while Spark starts"
    assert max(int(rate.replace(",", "")) for rate in rates) > 50
    drawn = ElementTree.parse(picture).getroot()
    texts = [each.text or "" for each in drawn.iter() if each.tag.endswith("text")]
    assert sum("kill -9: " in text for text in texts) == 2
