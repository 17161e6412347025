"""Strandline beside Apache Kafka: `python -m bench.run` measures, `python -m bench.page` writes the page."""
