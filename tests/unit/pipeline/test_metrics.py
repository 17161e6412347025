"""Metrics are in Prometheus's text format, and served while the pipeline runs."""

from __future__ import annotations

from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from strandline.node.http.metrics_page import metrics_handler, serving_in_a_thread
from strandline.pipeline.runtime.metrics import Metrics
from strandline.pipeline.runtime.progress import QueryTotals


def test_totals_are_served_as_prometheus_reads_them() -> None:
    metrics = Metrics('say "orders"')
    totals = QueryTotals(batches=3, last_batch=2, lag=0)
    totals.records["orders"] = 100
    totals.written["out"] = 95
    metrics.update({"topics": totals.as_json()})
    failed: list[Exception] = []
    handler = metrics_handler(metrics.families)
    with serving_in_a_thread(handler, "127.0.0.1", 0, failed.append) as port:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as response:
            lines = response.read().decode().splitlines()
        with pytest.raises(HTTPError, match="404") as refused:
            urlopen(f"http://127.0.0.1:{port}/", timeout=60)
        refused.value.close()
        with (
            pytest.raises(OSError, match="in use"),
            serving_in_a_thread(handler, "127.0.0.1", port, failed.append),
        ):
            pass
    assert failed == []
    labels = 'pipeline="say \\"orders\\"",query="topics"'
    assert f'strandline_pipeline_records_total{{{labels},source="orders"}} 100' in lines
    assert f'strandline_pipeline_written_total{{{labels},topic="out"}} 95' in lines
    assert f"strandline_pipeline_lag_records{{{labels}}} 0" in lines
    assert "# TYPE strandline_pipeline_batches_total counter" in lines
