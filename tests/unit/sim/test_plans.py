"""Scenario files: what is wrong with one is said, and what shipped ones draw depends on the seed alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.sim.search.faults import FaultEvent
from strandline.sim.search.run import events_of
from strandline.sim.search.scenario import InvalidScenario, load, load_events, parse, shipped
from strandline.sim.search.shrinking import shrink

GOOD = 'workloads = ["log"]\n[faults]\nkinds = ["kill"]\n'


def test_shipped_scenarios_are_of_every_speed_and_use_every_workload() -> None:
    plans = shipped().values()
    assert {plan.speed for plan in plans} == {"fast", "slow", "rare"}
    assert {name for plan in plans for name in plan.workloads} == {"log", "transactions", "loops", "groups"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("workloads = [", "bad"),
        ('workloads = ["log"]\nnode = 3', "node is no key"),
        ('workloads = ["logs"]', "there is no logs; there are log"),
        ("", "name at least one of log"),
        ('workloads = ["log"]\nspeed = "quick"', "there is no quick"),
        (GOOD + "how_many = 3", "how_many is no key"),
        ('workloads = ["log"]\n[faults]\nkinds = ["fire"]', "there is no fire; there are kill"),
        (GOOD + "seconds = [3.0, 1.0]", "the shortest and the longest"),
        (GOOD + "seconds = 5", "the shortest and the longest"),
        (GOOD + 'seconds = ["0", "1"]', "the shortest and the longest"),
        (GOOD + "seconds = [0.0, nan]", "the shortest and the longest"),
        (GOOD + 'every_s = "often"', "every_s must be a number of seconds, not 'often'"),
        (GOOD + "count = 1.5", r"faults\.count must be a whole number of at least 0, not 1\.5"),
        ('nodes = "three"\n' + GOOD, "nodes must be a whole number of at least 1, not 'three'"),
        ("nodes = 0\n" + GOOD, "nodes must be a whole number of at least 1, not 0"),
        ("controllers = true\n" + GOOD, "controllers must be a whole number of at least 0, not True"),
        ('pauses = "long"\n' + GOOD, r"pauses must be a number such as 1\.0, not 'long'"),
        ('workloads = "log"', r"workloads must be a list of names, such as \[.log.\], not 'log'"),
        ("workloads = 3", "workloads must be a list of names"),
        ('workloads = ["log"]\nfaults = 3', "faults must be a table"),
        ('workloads = ["log"]\nsettings = 3', "settings must be a table"),
        (
            GOOD + '[settings]\n"replica.lag.time.ms" = 1',
            r"replica\.lag\.time\.ms is no setting of a broker; did you mean replica\.lag\.time\.max\.ms",
        ),
        ("nodes = 1\n" + GOOD, "nodes is 1, and topics have 3 replicas"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(text: str, said: str) -> None:
    with pytest.raises(InvalidScenario, match=said):
        parse("bad", text)


def test_a_scenario_is_found_by_name_or_by_path(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(GOOD)
    assert load(str(tmp_path / "mine.toml")).name == "mine"
    assert load("kills").workloads == ("log",)
    with pytest.raises(InvalidScenario, match="cannot be read"):
        load(str(tmp_path / "none.toml"))
    (tmp_path / "mine.toml").write_bytes(b'about = "K\xf6ln"\n')
    with pytest.raises(InvalidScenario, match="is not in UTF-8"):
        load(str(tmp_path / "mine.toml"))


def test_a_seed_decides_on_the_faults() -> None:
    plan = shipped()["everything"]
    assert events_of(plan, 7) == events_of(plan, 7)
    assert events_of(plan, 7) != events_of(plan, 8)


def test_faults_that_were_printed_can_be_given_back(tmp_path: Path) -> None:
    events = events_of(shipped()["kills"], 3)
    path = tmp_path / "faults.toml"
    path.write_text("".join(map(FaultEvent.as_toml, events)))
    assert load_events(str(path), shipped()["kills"]) == events


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read"),
        ("[[event", "faults.toml: "),
        ("", r"has no \[\[event\]\]"),
        ("event = 3", "has kind, at, seconds, node and number"),
        ('[[event]]\nkind = "kill"', "has kind, at, seconds, node and number"),
        ('[[event]]\nkind = "kill"\nat = "soon"\nseconds = 1\nnode = 1', "at and seconds are times"),
        (FaultEvent(kind="fire", at=0.0, seconds=0.0, node=1).as_toml(), "there is no fire; there are kill"),
        (
            FaultEvent(kind="kill", at=0.0, seconds=0.0, node=4).as_toml(),
            "no node 4 in kills; there are 1 to 3",
        ),
    ],
)
def test_faults_that_cannot_be_used_say_why(text: str | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "faults.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InvalidScenario, match=said):
        load_events(str(path), shipped()["kills"])


def test_shrinking_leaves_what_the_failure_needs() -> None:
    events = [FaultEvent(kind="kill", at=float(n), seconds=1.0, node=1, number=n) for n in range(9)]

    def fails(candidate: list[FaultEvent]) -> bool:
        return {2, 7} <= {event.number for event in candidate}

    left = shrink(events, fails)
    assert [event.number for event in left] == [2, 7]
    assert [event.seconds for event in left] == [0.0, 0.0]
