"""A failing seed prints itself and the command that replays it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite("tests.sim.scenarios", "strandline.sim.checks.partition")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    seed = getattr(item, "callspec", None) and item.callspec.params.get("seed")
    if report.when == "call" and report.failed and seed is not None:
        command = f"STRANDLINE_SEED={seed} PYTHONPATH=src python -m pytest -q '{item.nodeid}'"
        report.sections.append((f"seed {seed} failed; replay it with", command))
    return report
