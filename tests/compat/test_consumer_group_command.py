"""Apache Kafka's ConsumerGroupCommand, console consumer formatters and log dump on the groups of the broker."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from tests.compat.clients.interface import eventually
from tests.compat.members.stories import Records, committed
from tests.compat.server import PrivateServer, Server
from tests.oracle.kafka_tools import KafkaTools, ToolResult

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]

Run = Callable[..., ToolResult]
Table = list[dict[str, str]]
PER_PARTITION = 10
# Ten of them are less than the seven days for which records are retained.
HALF_DAY_MS = 43_200_000


@pytest.fixture(scope="module")
def server(private_server: PrivateServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A broker of this module's own: its list of groups is known, and its files can be read."""
    with private_server({"offsets.topic.num.partitions": "2"}) as broker:
        yield broker


@pytest.fixture
def run(kafka_tools: KafkaTools, server: Server) -> Run:
    def run(*args: object) -> ToolResult:
        return kafka_tools.run("ConsumerGroupCommand", "--bootstrap-server", server.bootstrap, *args)

    return run


def table(result: ToolResult) -> Table:
    """Returns the rows that the tool prints, by the headings of their columns."""
    assert result.exit_code == 0, result.stdout + result.stderr
    lines = [line for line in result.lines if line.strip()]
    heading = next(n for n, line in enumerate(lines) if line.startswith("GROUP"))
    names = re.split(r"\s{2,}|\s(?=[A-Z(])", lines[heading].strip())
    return [dict(zip(names, re.split(r"\s+", line.strip()), strict=False)) for line in lines[heading + 1 :]]


class Written:
    """A topic with records of known times, and an empty group with known offsets."""

    def __init__(self, server: Server, partitions: int = 2) -> None:
        self.bootstrap = server.bootstrap
        self.records = Records(server.bootstrap, partitions)
        self.topic = self.records.topic
        self.group = f"g-{self.topic}"
        now_ms = int(datetime.now(UTC).timestamp() * 1000)
        self.first_ms = now_ms - PER_PARTITION * HALF_DAY_MS
        producer = Producer({"bootstrap.servers": server.bootstrap, "log_level": 0})
        for partition in range(partitions):
            for number in range(PER_PARTITION):
                producer.produce(
                    self.topic, b"x", partition=partition, timestamp=self.first_ms + number * HALF_DAY_MS
                )
        assert producer.flush(60) == 0
        self.set_to(5)

    def set_to(self, offset: int) -> None:
        from confluent_kafka import TopicPartition

        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": self.group})
        consumer.commit(
            offsets=[TopicPartition(self.topic, p, offset) for p in self.records.ends], asynchronous=False
        )
        consumer.close()

    def committed(self) -> dict[int, int]:
        return committed(self.bootstrap, self.group)


@pytest.fixture(scope="module")
def written(server: Server) -> Written:
    return Written(server)


class Live:
    """A group with two members that are alive."""

    def __init__(self, bootstrap: str, topic: str, **settings: str) -> None:
        self.group = f"live-{topic}-{settings.get('group.protocol', 'classic')}"
        given = {
            "bootstrap.servers": bootstrap,
            "group.id": self.group,
            "auto.offset.reset": "earliest",
            **settings,
        }
        self.consumers = [Consumer({**given, "client.id": name}) for name in ("one", "two")]
        for consumer in self.consumers:
            consumer.subscribe([topic])
        eventually(self._poll, lambda held: sorted(held) == [1, 1])

    def _poll(self) -> list[int]:
        for consumer in self.consumers:
            consumer.poll(0.05)
        return [len(consumer.assignment()) for consumer in self.consumers]

    def close(self) -> None:
        for consumer in self.consumers:
            consumer.close()


@pytest.fixture(scope="module", params=["classic", "consumer"])
def live(request: pytest.FixtureRequest, server: Server, written: Written) -> Iterator[Live]:
    group = Live(server.bootstrap, written.topic, **{"group.protocol": request.param})
    group.kind = request.param  # type: ignore[attr-defined]
    yield group
    group.close()


class TestDescribing:
    def test_groups_are_listed_by_state_and_type(self, run: Run, live: Live, written: Written) -> None:
        kind = live.kind.capitalize()  # type: ignore[attr-defined]
        assert {live.group, written.group} <= set(run("--list").succeeded().lines)
        states = {row["GROUP"]: row["STATE"] for row in table(run("--list", "--state"))}
        assert (states[live.group], states[written.group]) == ("Stable", "Empty")
        assert [row["GROUP"] for row in table(run("--list", "--state", "Empty"))].count(live.group) == 0
        types = {row["GROUP"]: row["TYPE"] for row in table(run("--list", "--type"))}
        assert (types[live.group], types[written.group]) == (kind, "Classic")

    def test_offsets_and_lag_are_described(self, run: Run, written: Written) -> None:
        written.set_to(4)
        result = run("--describe", "--group", written.group)
        assert f"Consumer group '{written.group}' has no active members." in result.stderr + result.stdout
        rows = [line.split() for line in result.lines if line.startswith(written.group)]
        assert sorted((row[2], row[3], row[4], row[5]) for row in rows) == [
            ("0", "4", "10", "6"),
            ("1", "4", "10", "6"),
        ]

    def test_members_are_described(self, run: Run, live: Live, written: Written) -> None:
        rows = [
            line.split() for line in run("--describe", "--group", live.group, "--members", "--verbose").lines
        ]
        told = {
            name: row
            for row in rows
            if row and row[0] == live.group
            for name in ("one", "two")
            if name in row
        }
        assert set(told) == {"one", "two"}
        shares = {
            partition for row in told.values() for partition in "01" if f"{written.topic}:{partition}" in row
        }
        assert shares == {"0", "1"}

    def test_state_is_described(self, run: Run, live: Live) -> None:
        lines = run("--describe", "--group", live.group, "--state").lines
        row = next(line.split() for line in lines if line.startswith(live.group))
        assert row[-2:] == ["Stable", "2"]
        assert row[-3] == ("range" if live.kind == "classic" else "uniform")  # type: ignore[attr-defined]

    def test_group_that_is_not_there_is_an_error(self, run: Run) -> None:
        result = run("--describe", "--group", "no-such-group")
        assert "Group no-such-group not found." in result.stdout


class TestResetting:
    def reset(self, run: Run, written: Written, *how: object, execute: bool = True) -> dict[int, int]:
        result = run(
            "--reset-offsets",
            *("--group", written.group, "--topic", written.topic),
            *how,
            "--execute" if execute else "--dry-run",
        )
        rows = table(result)
        return {int(row["PARTITION"]): int(row["NEW-OFFSET"]) for row in rows}

    @pytest.mark.parametrize(
        ("how", "expected"),
        [
            (("--to-earliest",), 0),
            (("--to-latest",), 10),
            (("--to-current",), 5),
            (("--to-offset", 7), 7),
            (("--to-offset", 99), 10),
            (("--shift-by", -2), 3),
            (("--shift-by", 3), 8),
            (("--shift-by", -50), 0),
            (("--by-duration", "P1DT18H"), 7),
        ],
        ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else str(value),
    )
    def test_offsets_are_reset(
        self, run: Run, written: Written, how: tuple[object, ...], expected: int
    ) -> None:
        written.set_to(5)
        assert self.reset(run, written, *how) == {0: expected, 1: expected}
        assert written.committed() == {0: expected, 1: expected}

    def test_offsets_are_reset_to_a_time(self, run: Run, written: Written) -> None:
        when = datetime.fromtimestamp((written.first_ms + 6 * HALF_DAY_MS - 1000) / 1000, UTC)
        text = when.strftime("%Y-%m-%dT%H:%M:%S.000")
        assert self.reset(run, written, "--to-datetime", text) == {0: 6, 1: 6}

    def test_dry_run_changes_nothing(self, run: Run, written: Written) -> None:
        written.set_to(5)
        assert self.reset(run, written, "--to-earliest", execute=False) == {0: 0, 1: 0}
        assert written.committed() == {0: 5, 1: 5}

    def test_plan_is_exported_and_executed_from_its_file(
        self, run: Run, written: Written, tmp_path: Path
    ) -> None:
        written.set_to(5)
        topic, group = written.topic, written.group
        exported = run(
            "--reset-offsets", "--group", group, "--topic", topic, "--to-offset", 2, "--export", "--dry-run"
        ).succeeded()
        plan = tmp_path / "plan.csv"
        plan.write_text(exported.stdout)
        assert f"{topic},0,2" in exported.stdout
        result = run("--reset-offsets", "--group", group, "--from-file", plan, "--execute")
        assert {row["NEW-OFFSET"] for row in table(result)} == {"2"}
        assert written.committed() == {0: 2, 1: 2}

    def test_group_with_members_is_not_reset(self, run: Run, live: Live, written: Written) -> None:
        result = run(
            "--reset-offsets", "--group", live.group, "--topic", written.topic, "--to-earliest", "--execute"
        )
        assert "Assignments can only be reset if the group" in result.stdout + result.stderr


class TestDeleting:
    def test_group_with_members_is_not_deleted(self, run: Run, live: Live) -> None:
        result = run("--delete", "--group", live.group)
        assert "GroupNotEmptyException" in result.stdout + result.stderr

    def test_offsets_of_a_topic_in_use_are_not_deleted(self, run: Run, live: Live, written: Written) -> None:
        result = run("--delete-offsets", "--group", live.group, "--topic", written.topic)
        assert "actively subscribed" in result.stdout

    def test_offsets_and_then_the_group_are_deleted(self, run: Run, server: Server) -> None:
        other = Written(server)
        deleted = run("--delete-offsets", "--group", other.group, "--topic", f"{other.topic}:0")
        assert "Successful" in deleted.stdout, deleted.stdout + deleted.stderr
        assert other.committed() == {1: 5}
        gone = run("--delete", "--group", other.group)
        assert f"Deletion of requested consumer groups ('{other.group}') was successful." in gone.stdout
        assert other.group not in run("--list").succeeded().lines


class TestOffsetsTopic:
    def consumed(self, kafka_tools: KafkaTools, server: Server, formatter: str) -> list[dict[str, object]]:
        """Returns the topic's records as a formatter of Kafka shows them; the tool ends when no more records come."""
        read = kafka_tools.run(
            "ConsoleConsumer",
            *("--bootstrap-server", server.bootstrap, "--topic", "__consumer_offsets", "--from-beginning"),
            *("--formatter", f"org.apache.kafka.tools.consumer.{formatter}", "--timeout-ms", 1000),
        )
        text, position, found = read.stdout.strip(), 0, []
        while position < len(text):  # one behind the other, without a separator
            entry, position = json.JSONDecoder().raw_decode(text, position)
            found.append(entry)
        return found

    def test_formatters_of_the_console_consumer_read_it(
        self, kafka_tools: KafkaTools, server: Server, written: Written, live: Live
    ) -> None:
        written.set_to(5)
        offsets = self.consumed(kafka_tools, server, "OffsetsMessageFormatter")
        mine = [entry for entry in offsets if entry["key"]["data"]["group"] == written.group]  # type: ignore[index]
        assert mine[-1]["key"]["data"]["topic"] == written.topic  # type: ignore[index]
        value = mine[-1]["value"]
        assert value["data"]["offset"] == 5  # type: ignore[index]
        assert value["version"] == 4  # type: ignore[index]
        assert value["data"]["topicId"] not in (None, "", "A" * 22), "the topic, and not only its name"  # type: ignore[index]
        groups = self.consumed(kafka_tools, server, "GroupMetadataMessageFormatter")
        assert groups, "a classic group was written"
        assert all(entry["key"]["data"]["group"] for entry in groups)  # type: ignore[index]

    def test_its_files_are_dumped(
        self, kafka_tools: KafkaTools, server: Server, written: Written, live: Live
    ) -> None:
        files = sorted(server.data_dir.glob("__consumer_offsets-*/*.log"))
        dumped = ""
        for file in files:
            result = kafka_tools.run("DumpLogSegments", "--offsets-decoder", "--files", file)
            assert result.exit_code == 0
            assert "isvalid: false" not in result.stdout
            assert "cannot be decoded" not in result.stdout, result.stdout
            dumped += result.stdout
        assert f'"group":"{written.group}"' in dumped
        assert f'"topic":"{written.topic}"' in dumped
        kinds = {"classic": '"protocolType":"consumer"', "consumer": '"groupId":'}
        assert kinds[live.kind] in dumped  # type: ignore[attr-defined]
