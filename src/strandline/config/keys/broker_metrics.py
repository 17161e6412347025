"""Broker keys of metrics and of the quotas of clients."""

from __future__ import annotations

from typing import Final

from strandline.config.definition import (
    ANY_LIST,
    CLASS,
    CLUSTER_WIDE,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    STRING,
    ConfigKey,
    accepted,
    active,
    at_least,
    between,
)

KEYS: Final[tuple[ConfigKey, ...]] = (
    active("strandline.metrics.port", INT, -1, between(-1, 65_535), MEDIUM).documented(
        "Port on which this node serves /metrics, /healthz, /readyz and the lag of groups over HTTP; 0 takes a free "
        "one, -1 opens none."
    ),
    active("strandline.metrics.host", STRING, "localhost", None, MEDIUM).documented(
        "Address on which that port listens. Everybody who can connect to it sees the names of topics, "
        "groups and clients."
    ),
    active("strandline.lag.sample.interval.ms", LONG, 10_000, at_least(100), LOW).documented(
        "How often a node that serves metrics looks at the offsets of the groups that it coordinates."
    ),
    active("strandline.lag.warning", LONG, 1_000, at_least(0), LOW).documented(
        "A group with a larger lag has the status WARN."
    ),
    active("strandline.lag.critical", LONG, 10_000, at_least(0), LOW).documented(
        "A group with a larger lag has the status ERR."
    ),
    active("strandline.lag.rising.ms", LONG, 300_000, at_least(1000), LOW).documented(
        "A group of which a partition's lag has not become smaller for so long has the status WARN."
    ),
    active("strandline.lag.stop.ms", LONG, 60_000, at_least(100), LOW).documented(
        "Shortest time without a commit after which a partition with lag counts as stopped."
    ),
    active("strandline.metrics.series.max", INT, 100_000, at_least(1000), LOW).documented(
        "Most series of a page of metrics. Metrics with a series for each partition are left out first, each as a "
        "whole."
    ),
    active("strandline.client.metrics.series.max", INT, 20_000, at_least(0), LOW).documented(
        "Most series that all clients together may push to this broker (KIP-714); those beyond are left out."
    ),
    accepted(
        "metric.reporters",
        LIST,
        ("org.apache.kafka.common.metrics.JmxReporter",),
        ANY_LIST,
        LOW,
        CLUSTER_WIDE,
    ).documented("Classes that report Kafka's metrics."),
    accepted("metrics.num.samples", INT, 2, at_least(1), LOW).documented("Samples kept for each metric."),
    accepted("metrics.sample.window.ms", LONG, 30_000, at_least(1), LOW).documented(
        "Length of one sample of a metric."
    ),
    accepted("metrics.recording.level", STRING, "INFO", None, LOW).documented(
        "The level of detail of metrics: INFO, DEBUG or TRACE."
    ),
    accepted("kafka.metrics.reporters", LIST, (), ANY_LIST, LOW).documented(
        "Classes that report the older metrics of the broker."
    ),
    accepted("kafka.metrics.polling.interval.secs", INT, 10, at_least(1), LOW).documented(
        "How often the older reporters read their metrics."
    ),
    active("quota.window.num", INT, 11, at_least(1), LOW).documented(
        "Samples kept to measure the traffic of clients."
    ),
    active("quota.window.size.seconds", INT, 1, at_least(1), LOW).documented(
        "Length of a sample with which the traffic of clients is measured."
    ),
    active("controller.quota.window.num", INT, 11, at_least(1), LOW).documented(
        "Samples kept to measure how many partitions clients create and delete."
    ),
    active("controller.quota.window.size.seconds", INT, 1, at_least(1), LOW).documented(
        "Length of a sample with which the creation and deletion of partitions is measured."
    ),
    accepted("client.quota.callback.class", CLASS, None, None, LOW).documented(
        "A class that decides which quota a client has. Without it, the stored quotas of users and client "
        "ids."
    ),
)
