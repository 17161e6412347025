"""`strandline lab check` finds what settings lose, and advises only what it has seen to help."""

from __future__ import annotations

import json

import pytest

from strandline.broker.replication.replica_fetcher import LeaderFetcher
from strandline.cli.exit_codes import DONE, FAILED, NOT_FOUND, USAGE
from strandline.cli.lab import check as command
from strandline.cli.main import main
from strandline.cli.output.document import mismatch
from strandline.client.admin.topics import NewTopic
from strandline.client.sync import Admin
from strandline.config.presets import PRESETS
from strandline.lab.check import check as check_module
from strandline.lab.check.advice import advice_on
from strandline.lab.check.failures import FAILURES, Failure
from strandline.lab.check.findings import BLOCKS, LOSES, WAITS, Finding, play
from strandline.lab.check.settings import CheckedSettings, checked
from strandline.lab.numbers import as_text, count_of_numbers
from strandline.testing import running_broker

BY_NAME = {each.name: each for each in FAILURES}


def preset_settings(name: str, **topic: str) -> CheckedSettings:
    chosen = PRESETS[name]
    given = {key.replace("_", "."): value for key, value in topic.items()}
    return checked(
        CheckedSettings(
            producer=chosen.producer,
            consumer=chosen.consumer,
            topic={**chosen.topic, **given},
            cluster=chosen.cluster,
        )
    )


def kinds(failure: str, settings: CheckedSettings) -> set[str]:
    return {each.kind for each in play(BY_NAME[failure], settings)}


def test_leader_that_crashes_takes_records_of_acks_1_along_and_none_of_acks_all() -> None:
    assert LOSES in kinds("leader-crashes", preset_settings("high-throughput"))
    assert kinds("leader-crashes", preset_settings("critical")) == set()


def test_flush_messages_keeps_records_that_a_power_cut_of_all_brokers_would_lose() -> None:
    assert LOSES in kinds("power-fails", preset_settings("critical"))
    assert LOSES not in kinds("power-fails", preset_settings("critical", flush_messages="1"))


def test_follower_that_acknowledges_before_it_has_synced_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def forget(fetcher: LeaderFetcher) -> None:
        fetcher._unflushed = []

    monkeypatch.setattr(LeaderFetcher, "_flush_taken", forget)
    assert LOSES in kinds("power-fails", preset_settings("critical", flush_messages="1"))


def test_only_a_change_that_was_seen_to_help_is_advised() -> None:
    settings = preset_settings("high-throughput")
    failure = BY_NAME["leader-crashes"]
    loss = Finding(kind=LOSES, records=10)

    def always_loses(failure: Failure, settings: CheckedSettings) -> tuple[Finding, ...]:
        return (loss,)

    def acks_all_blocks(failure: Failure, settings: CheckedSettings) -> tuple[Finding, ...]:
        return (Finding(kind=BLOCKS),) if settings.acks == "all" else (loss,)

    (none,) = advice_on(failure, (loss,), settings, always_loses)
    assert none.changes == {}
    (other,) = advice_on(failure, (loss,), settings, acks_all_blocks)
    assert other.changes == {}, "a change that blocks everything is no help"
    (helps,) = advice_on(failure, (loss,), settings, play)
    assert helps.changes["producer"]["acks"] == "all"


def test_wait_is_called_shorter_only_if_it_is() -> None:
    settings, failure = preset_settings("critical"), BY_NAME["leader-falls-silent"]

    def takes(seconds: float) -> tuple[Finding, ...]:
        return (Finding(kind=WAITS, seconds=seconds),)

    assert advice_on(failure, takes(30), settings, lambda *_: takes(29)) == ()
    assert advice_on(failure, takes(30), settings, lambda *_: takes(10))[0].kind == WAITS
    assert advice_on(failure, takes(5), settings, lambda *_: takes(1)) == ()


FEW = tuple(BY_NAME[name] for name in ("leader-crashes", "consumer-crashes", "member-joins"))


def test_report_has_its_shape_and_the_exit_code_tells_of_harm(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check_module, "FAILURES", FEW)
    assert main(["lab", "check", "--preset", "critical", "--consumer", "group.id=billing", "--json"]) == DONE
    report = json.loads(capsys.readouterr().out)
    assert mismatch(report, command.SHAPE) is None
    assert report["survives_single_failures"]
    verdicts = {each["point"]: each["verdict"] for each in report["checklist"]}
    assert len(verdicts) == 8
    assert verdicts["Set meaningful group.id"] == "good"
    assert verdicts["Consider static membership for stable deployments"] == "change"
    assert (
        main(["lab", "check", "--preset", "critical", "--producer", "acks=1", "enable.idempotence=false"])
        == FAILED
    )
    told = capsys.readouterr().out
    assert "loses 10 acknowledged records" in told
    assert "→ loses: producer: acks=all" in told


def test_live_topic_is_checked_with_its_own_settings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check_module, "FAILURES", (BY_NAME["disk-is-lost"],))
    with running_broker() as broker:
        with Admin({"bootstrap.servers": broker.bootstrap}) as admin:
            admin.create_topics([NewTopic(name="orders", configs={"flush.messages": "1"})])
        asked = ["lab", "check", "-b", broker.bootstrap, "--json", "--topic"]
        assert main([*asked, "orders"]) == FAILED
        report = json.loads(capsys.readouterr().out)
        assert main([*asked, "nothing"]) == NOT_FOUND
        assert main([*asked, "orders", "acks=1"]) == USAGE
    told = report["settings"]["topic"]
    assert (told["flush.messages"], told["replication.factor"]) == ("1", "1")
    assert report["failures"][0]["findings"][0]["kind"] == LOSES
    changes = report["failures"][0]["advice"][0]["changes"]
    assert changes["topic"]["replication.factor"] == "3"


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (
            ["--topic", "min.insync.replicas=3", "replication.factor=2"],
            "topic: min.insync.replicas=3 is above replication.factor=2: no write with acks=all",
        ),
        (["--producer", "acks=1", "enable.idempotence=true"], "acks=1 contradicts enable.idempotence=true"),
        (["--producer", "ackz=1"], "ackz is no setting of this client; did you mean acks?"),
        (["--consumer", "isolation.level=none"], "consumer: "),
        (["--topic", "min.isr=1"], "topic: Unknown topic config name: min.isr"),
        (["--topic", "replication.factor=x"], "replication.factor=x is no number of replicas"),
        (["--cluster", "min.insinc.replicas=2"], "did you mean min.insync.replicas?"),
        (["--producer", "nowhere.properties"], "--producer nowhere.properties: "),
        ([], "say which settings"),
    ],
)
def test_impossible_settings_are_told_in_one_line(
    typed: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", "check", *typed]) == USAGE
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1


def test_counted_numbers_are_those_of_the_text() -> None:
    for numbers in ([], [7], [0, 1, 2], [1, 2, 5, 7, 8, 9]):
        assert count_of_numbers(as_text(numbers)) == len(numbers)
