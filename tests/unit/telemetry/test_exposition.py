"""The text of metrics, read by Prometheus' own parsers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open_metrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from strandline.broker.telemetry.times import histogram_family, summary
from strandline.telemetry.exposition import (
    MANY,
    PER_PARTITION,
    Family,
    counter,
    gauge,
    labels,
    render,
)
from strandline.telemetry.histogram import Histogram, RecentCounts, RecentRate, quantile


def page(*families: Family, is_open_metrics: bool = False, series_max: int = 1000) -> str:
    return "".join(render(families, is_open_metrics=is_open_metrics, series_max=series_max))


def values(
    text: str, *, is_open_metrics: bool = False
) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    parse = parse_open_metrics if is_open_metrics else parse_text
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse(text)
        for sample in family.samples
    }


@pytest.mark.parametrize("is_open_metrics", [False, True])
@given(name=st.text(max_size=30))
def test_any_name_of_a_group_can_be_read_back(is_open_metrics: bool, name: str) -> None:
    text = page(
        gauge("lag", "Lag.", None, (labels(group=name, topic="t"), 3)), is_open_metrics=is_open_metrics
    )
    found = [key for key in values(text, is_open_metrics=is_open_metrics) if key[0] == "lag"]
    assert len(found) == 1
    shown = dict(found[0][1])["group"]
    assert shown == "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in name)


@pytest.mark.parametrize("is_open_metrics", [False, True])
def test_every_kind_is_understood(is_open_metrics: bool) -> None:
    times = Histogram()
    for value in (0.0004, 0.003, 0.003, 99.0):
        times.observe(value)
    text = page(
        counter("requests_total", 'With "quotes"\nand lines.', 5, (labels(version="3"), 2)),
        gauge("temperature", "In degrees.", -1.5),
        gauge("none", "No sample.", None),
        summary("totaltimems", "ms", [(labels(request="Fetch"), times, times.counts)]),
        histogram_family("seconds", "s", [("", times)]),
        is_open_metrics=is_open_metrics,
    )
    found = values(text, is_open_metrics=is_open_metrics)
    assert found["requests_total", ()] == 5
    assert found["requests_total", (("version", "3"),)] == 2
    assert found["temperature", ()] == -1.5
    assert found["totaltimems_count", (("request", "Fetch"),)] == 4
    assert found["totaltimems_sum", (("request", "Fetch"),)] == pytest.approx(99006.4)
    assert found["totaltimems", (("quantile", "0.50"), ("request", "Fetch"))] == pytest.approx(3.75)
    assert found["seconds_bucket", (("le", "0.0005"),)] == 1
    assert found["seconds_bucket", (("le", "0.005"),)] == 3
    assert found["seconds_bucket", (("le", "+Inf"),)] == found["seconds_count", ()] == 4
    assert not any(name == "none" for name, _ in found)
    assert text.endswith("# EOF\n") == is_open_metrics


def test_metrics_of_partitions_are_left_out_first_and_as_a_whole() -> None:
    few = gauge("few", "f", 1)
    topics = Family("topics", "gauge", "t", [(labels(topic=n), n) for n in range(50)], MANY)
    partitions = Family("partitions", "gauge", "p", [(labels(p=n), n) for n in range(60)], PER_PARTITION)
    found = values(page(few, topics, partitions, series_max=100))
    assert len([name for name, _ in found if name == "topics"]) == 50
    assert not any(name == "partitions" for name, _ in found)
    assert found["strandline_metrics_left_out_series", (("metric", "partitions"),)] == 60
    everything = values(page(few, topics, partitions, series_max=111))
    assert len([name for name, _ in everything if name == "partitions"]) == 60
    assert not any(name == "strandline_metrics_left_out_series" for name, _ in everything)
    assert found["strandline_metrics_series", ()] == len(found)


def test_values_that_are_no_numbers_are_written_as_prometheus_wants_them() -> None:
    found = values(page(gauge("a", "a", math.inf), gauge("b", "b", -math.inf), gauge("c", "c", math.nan)))
    assert found["a", ()] == math.inf
    assert found["b", ()] == -math.inf
    assert math.isnan(found["c", ()])


@given(st.lists(st.floats(0, 40), min_size=1), st.floats(0, 1))
def test_a_quantile_lies_in_the_bucket_of_the_value_of_its_rank(observed: list[float], share: float) -> None:
    histogram = Histogram()
    for value in observed:
        histogram.observe(value)
    exact = sorted(observed)[max(math.ceil(share * len(observed)), 1) - 1]
    bounds = histogram.bounds
    low = max(bound for bound in bounds if bound < exact or bound == 0)
    high = min((bound for bound in bounds if bound >= exact), default=histogram.bounds[-1])
    assert min(low, histogram.bounds[-1]) <= quantile(histogram.bounds, histogram.counts, share) <= high


@given(st.lists(st.floats(0, 40)))
def test_many_observations_at_once_are_the_same_as_one_by_one(observed: list[float]) -> None:
    single, together = Histogram(), Histogram()
    for value in observed:
        single.observe(value)
    together.observe_all(list(observed))
    assert together.counts == single.counts
    assert together.sum == pytest.approx(single.sum)


def test_quantiles_forget_what_was_minutes_ago() -> None:
    recent, histogram = RecentCounts(), Histogram()
    histogram.observe(20.0)
    assert sum(recent.since(histogram.counts, 0.0)) == 1
    for now in (61.0, 122.0):
        histogram.observe(0.001)
        recent.since(histogram.counts, now)
    histogram.observe(0.001)
    counts = recent.since(histogram.counts, 183.0)
    assert quantile(histogram.bounds, counts, 0.99) < 0.01


def test_a_rate_is_that_of_the_last_minutes() -> None:
    rate = RecentRate()
    assert rate.of(1000, 0.0) == 0
    assert rate.of(1060, 60.0) == pytest.approx(1.0)
    assert rate.of(1660, 120.0) == pytest.approx(10.0)
