"""README's lines for Spark run as they stand there, in a process of their own, and copy what is in the topic."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from strandline.client.sync import Admin, Producer
from strandline.testing import running_broker
from tests.docs.fences import fences_of
from tests.docs.pages import ROOT
from tests.spark.topics import rows_of

pytest.importorskip("pyspark")
pytestmark = pytest.mark.xdist_group("spark-drivers")

SECONDS_MAX = 400
END = "\nquery.processAllAvailable()\nquery.stop()\nspark.stop()\n"


def test_readme_copies_a_topic(tmp_path: Path) -> None:
    (shown,) = [each.text for each in fences_of(ROOT / "README.md") if "readStream" in each.text]
    with running_broker(num_partitions="1") as broker:
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topic("copy")
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for number in range(20):
                producer.send("orders", b"%d" % number)
        ran = subprocess.run(
            [sys.executable, "-c", shown.replace("localhost:9092", broker.bootstrap) + END],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout
        assert [row.value for row in rows_of(broker.bootstrap, "copy", 1)] == [
            b"%d" % number for number in range(20)
        ]
