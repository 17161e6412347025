"""Progress of a pipeline for Prometheus, over HTTP at /metrics."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

_PREFIX: Final = "strandline_pipeline_"
_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
# By key of a query's totals: the metric's name, the label that its counts are by, and what it is.
_COUNTERS: Final = {
    "records": ("records_total", "source", "Records read."),
    "written": ("written_total", "topic", "Records committed to topics."),
    "retried": ("retried_total", "topic", "Records committed to retry topics."),
    "dead_letters": ("dead_letters_total", "topic", "Records committed to dead-letter topics."),
}
_GAUGES: Final = {
    "last_seconds": ("batch_seconds", "How long the last batch took."),
    "records_per_second": ("records_per_second", "The rate of the last batch."),
    "lag": ("lag_records", "Records that are there and not read yet, at the last batch."),
    "last_batch": ("last_batch", "The number of the last batch."),
}


class Metrics:
    """The totals of a pipeline's queries. Any thread may ask for the text."""

    def __init__(self, pipeline: str) -> None:
        self._pipeline = pipeline
        self._queries: Mapping[str, Mapping[str, Any]] = {}

    def update(self, queries: Mapping[str, Mapping[str, Any]]) -> None:
        """Replaces the totals."""
        self._queries = queries

    def text(self) -> str:
        """Returns the metrics in Prometheus' text format."""
        queries = self._queries
        lines: list[str] = []
        for key, (name, label, doc) in _COUNTERS.items():
            lines += _head(name, "counter", doc)
            for query, totals in queries.items():
                for value, count in sorted(totals[key].items()):
                    lines.append(self._sample(name, count, query=query, **{label: value}))
        lines += _head("batches_total", "counter", "Batches done.")
        lines += [
            self._sample("batches_total", totals["batches"], query=query) for query, totals in queries.items()
        ]
        for key, (name, doc) in _GAUGES.items():
            lines += _head(name, "gauge", doc)
            for query, totals in queries.items():
                if totals[key] is not None:
                    lines.append(self._sample(name, totals[key], query=query))
        return "\n".join(lines) + "\n"

    def _sample(self, name: str, value: float, **labels: str) -> str:
        pairs = {"pipeline": self._pipeline, **labels}
        inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in pairs.items())
        return f"{_PREFIX}{name}{{{inside}}} {value}"


def _head(name: str, kind: str, doc: str) -> list[str]:
    return [f"# HELP {_PREFIX}{name} {doc}", f"# TYPE {_PREFIX}{name} {kind}"]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@contextmanager
def serving(metrics: Metrics, port: int, host: str = "127.0.0.1") -> Iterator[int]:
    """Serves the metrics while it lasts, and yields the port, which is a free one if `port` is 0."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_known = self.path.partition("?")[0] == "/metrics"
            body = metrics.text().encode() if is_known else b"the metrics are at /metrics\n"
            self.send_response(200 if is_known else 404)
            self.send_header("Content-Type", _CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Does nothing: scrapes are no events of the pipeline."""

    server = ThreadingHTTPServer((host, port), Handler)
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
