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
    STRING,
    ConfigKey,
    accepted,
    at_least,
)

KEYS: Final[tuple[ConfigKey, ...]] = (
    accepted(
        "metric.reporters",
        LIST,
        ("org.apache.kafka.common.metrics.JmxReporter",),
        ANY_LIST,
        LOW,
        CLUSTER_WIDE,
    ).documented("Classes that pass Kafka's metrics on."),
    accepted("metrics.num.samples", INT, 2, at_least(1), LOW).documented("Samples kept for each metric."),
    accepted("metrics.sample.window.ms", LONG, 30_000, at_least(1), LOW).documented(
        "Length of one sample of a metric."
    ),
    accepted("metrics.recording.level", STRING, "INFO", None, LOW).documented(
        "How much is measured: INFO, DEBUG or TRACE."
    ),
    accepted("kafka.metrics.reporters", LIST, (), ANY_LIST, LOW).documented(
        "Classes that pass the older metrics of the broker on."
    ),
    accepted("kafka.metrics.polling.interval.secs", INT, 10, at_least(1), LOW).documented(
        "How often the older reporters are asked for their figures."
    ),
    accepted("quota.window.num", INT, 11, at_least(1), LOW).documented(
        "Samples kept to measure the traffic of clients."
    ),
    accepted("quota.window.size.seconds", INT, 1, at_least(1), LOW).documented(
        "Length of a sample with which the traffic of clients is measured."
    ),
    accepted("controller.quota.window.num", INT, 11, at_least(1), LOW).documented(
        "Samples kept to measure how many partitions clients create and delete."
    ),
    accepted("controller.quota.window.size.seconds", INT, 1, at_least(1), LOW).documented(
        "Length of a sample with which the creation and deletion of partitions is measured."
    ),
    accepted("client.quota.callback.class", CLASS, None, None, LOW).documented(
        "A class that decides which quota a client has. Without it, the stored quotas of users and client "
        "ids."
    ),
)
