"""The first pipeline of docs/guides/pipelines.md prints what the page shows; `make soak` runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from strandline.testing import running_broker
from tests.docs.fences import Fence, fences_of
from tests.docs.output import mismatch

pytest.importorskip("pyspark")

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "pipelines.md"
PROOF = "tests/spark/test_first_pipeline.py"
# Lines of the JVM, and of Spark's log.
OF_SPARK = re.compile(r"^(WARNING: |Using |Setting |To adjust |\d\d/\d\d/\d\d ).*\n", re.MULTILINE)
pytestmark = pytest.mark.skipif(os.environ.get("STRANDLINE_SOAK") != "1", reason="`make soak` runs it")


def the_fence(**wanted: str) -> Fence:
    (found,) = [
        each
        for each in fences_of(PAGE)
        if all(getattr(each, name) == value for name, value in wanted.items())
    ]
    return found


def test_the_first_pipeline_prints_what_the_page_shows(tmp_path: Path) -> None:
    with running_broker() as broker:
        spec = the_fence(directive="file", argument="big-orders.yaml").text
        (tmp_path / "big-orders.yaml").write_text(spec.replace("localhost:9092", broker.bootstrap))
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "STRANDLINE_BOOTSTRAP_SERVERS": broker.bootstrap,
        }
        up, *commands = the_fence(directive="proved by", argument=PROOF).commands
        assert up == ("strandline up &", ""), "the broker of this test stands for it"
        for command, shown in commands:
            done = subprocess.run(
                ["bash", "-ec", command],
                cwd=tmp_path,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=400,
                check=False,
            )
            assert done.returncode == 0, done.stdout
            if shown.strip():
                difference = mismatch(shown, OF_SPARK.sub("", done.stdout))
                assert difference is None, f"{command}\n{difference}"
