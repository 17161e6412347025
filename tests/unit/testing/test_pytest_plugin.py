"""The pytest plugin, as the tests of a user's project meet it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PLAIN = ("-q", "-p", "no:timeout", "-p", "no:hypothesispytest")
ALONE = (*PLAIN, "-p", "no:xdist", "-p", "no:asyncio", "-p", "no:anyio")


def test_the_plugin_s_fixtures_give_a_broker_and_a_topic_of_the_test_s_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from confluent_kafka import Producer

        seen = []

        def write(broker, topic):
            producer = Producer({"bootstrap.servers": broker.bootstrap})
            errors = []
            producer.produce(topic, b"v", on_delivery=lambda error, message: errors.append((error, message.offset())))
            assert producer.flush(60) == 0
            seen.append((broker.pid, topic))
            return errors

        def test_one(strandline_broker, strandline_topic):
            assert write(strandline_broker, strandline_topic) == [(None, 0)]

        def test_two(strandline_broker, strandline_topic):
            assert write(strandline_broker, strandline_topic) == [(None, 0)]
            assert seen[0][0] == seen[1][0], "one broker for the session"
            assert seen[0][1] != seen[1][1], "a topic for each test"

        def test_x_with_a_strange_name(strandline_topic, request):
            assert strandline_topic.startswith("test_x_with_a_strange_name-")
        """
    )
    result = pytester.runpytest_subprocess(*ALONE)
    result.assert_outcomes(passed=3)


def test_fixtures_take_settings_from_the_ini_file_and_from_markers_and_topics_exist(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini("[pytest]\nstrandline_settings =\n    num.partitions=5\n")
    pytester.makepyfile(
        """
        import pytest
        from strandline.client.sync import Admin

        def partitions(broker, topic):
            with Admin(bootstrap_servers=broker.bootstrap) as admin:
                return len(admin.describe_topics([topic])[topic].partitions)

        @pytest.fixture(scope="module")
        def wide(strandline_topic_factory):
            return strandline_topic_factory(partitions=4, configs={"retention.ms": 60000})

        def test_a_topic_exists_before_a_consumer_comes(strandline_broker, wide):
            assert partitions(strandline_broker, wide) == 4
            with Admin(bootstrap_servers=strandline_broker.bootstrap) as admin:
                admin.create_topic("by-default", partitions=-1)
            assert partitions(strandline_broker, "by-default") == 5

        @pytest.mark.strandline_settings(num_partitions=7)
        def test_a_broker_of_its_own(strandline_own_broker):
            with Admin(bootstrap_servers=strandline_own_broker.bootstrap) as admin:
                admin.create_topic("by-default", partitions=-1)
            assert partitions(strandline_own_broker, "by-default") == 7
            strandline_own_broker.kill()
        """
    )
    result = pytester.runpytest_subprocess(*ALONE, "--strict-markers")
    result.assert_outcomes(passed=2)


def test_a_failing_test_shows_what_the_broker_logged_since_it_began_and_no_more(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        def test_before(strandline_broker):
            strandline_broker.create_topic("made-before")

        def test_fails(strandline_broker):
            strandline_broker.create_topic("made-by-the-failing-test")
            assert False

        def test_fails_without_the_broker_at_work():
            assert False

        def test_logs_much(strandline_own_broker):
            for number in range(100):
                strandline_own_broker.create_topic(f"one-of-many-{number}")
            assert False
        """
    )
    result = pytester.runpytest_subprocess(*ALONE)
    result.assert_outcomes(passed=1, failed=3)
    text = result.stdout.str()
    assert len(re.findall(r"-- log of broker 127\.0\.0\.1:\d+ --", text)) == 2
    assert "made-by-the-failing-test" in text
    assert "made-before" not in text
    assert "one-of-many-99" in text
    assert "(earlier lines are left out)" in text
    assert "one-of-many-30" not in text


@pytest.mark.parametrize("options", [(), ("-n", "1")])
def test_a_broker_that_died_is_named_in_reports_at_teardown_and_at_the_end(
    pytester: pytest.Pytester, options: tuple[str, ...]
) -> None:
    pytester.makepyfile(
        """
        import os, signal

        def test_kills(strandline_broker):
            strandline_broker.create_topic("last-words")
            os.kill(strandline_broker.pid, signal.SIGKILL)
            os.waitid(os.P_PID, strandline_broker.pid, os.WEXITED | os.WNOWAIT)

        def test_suffers(strandline_broker):
            assert False
        """
    )
    result = pytester.runpytest_subprocess(*(PLAIN if options else ALONE), *options)
    result.assert_outcomes(passed=1, failed=1, errors=1)
    text = result.stdout.str()
    assert "strandline: a broker died" in text
    assert "was killed by SIGKILL" in text
    assert "topic=last-words" in text, "the last lines of its log"
    assert "noticed in test_a_broker_that_died" in text
    assert "::test_kills" in text
    assert re.search(r"^E +strandline\.testing\.process\.BrokerDied: broker 127", text, re.MULTILINE)
    end = text[text.index("brokers of strandline that died") :]
    assert re.search(r"broker 127\.0\.0\.1:\d+ \(process \d+\) was killed by SIGKILL: noticed in", end)


def test_a_shared_broker_that_a_test_stopped_is_told_in_reports_of_those_after_it(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        def test_stops_it(strandline_broker):
            strandline_broker.stop()

        def test_suffers(strandline_broker):
            assert False
        """
    )
    result = pytester.runpytest_subprocess(*ALONE)
    result.assert_outcomes(passed=1, failed=1)
    text = " ".join(result.stdout.str().split())
    assert "::test_stops_it has stopped or killed the broker of strandline_broker" in text


def test_a_test_may_kill_its_own_broker_but_one_that_ends_by_itself_is_an_error(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import os, signal

        def ended(process):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

        def test_kills_its_own(strandline_own_broker):
            os.kill(strandline_own_broker.pid, signal.SIGKILL)
            ended(strandline_own_broker)

        def test_halts(strandline_own_broker):
            os.kill(strandline_own_broker.pid, signal.SIGABRT)  # as after a violated assertion: it has a status
            ended(strandline_own_broker)
        """
    )
    result = pytester.runpytest_subprocess(*ALONE)
    result.assert_outcomes(passed=2, errors=1)
    assert "was killed by SIGABRT" in result.stdout.str()


def test_each_module_has_its_broker_and_cluster_with_the_settings_of_its_marker(
    pytester: pytest.Pytester,
) -> None:
    module = """
        import pytest

        pytestmark = pytest.mark.strandline_settings(num_partitions={count})
        seen = set()

        def partitions(broker):
            broker.produce("by-default", ["x"])
            placed = broker.produce("by-default", [(str(n), "v") for n in range(50)])
            return len({{record.partition for record in placed}})

        def test_one(strandline_module_broker):
            seen.add(strandline_module_broker.pid)
            assert partitions(strandline_module_broker) == {count}

        def test_two(strandline_module_broker):
            seen.add(strandline_module_broker.pid)
            assert len(seen) == 1, "one broker for the module"
        """
    pytester.makepyfile(test_first=module.format(count=2), test_second=module.format(count=3))
    pytester.makepyfile(
        test_third="""
        import time

        def test_a_cluster_of_the_module(strandline_module_cluster):
            cluster = strandline_module_cluster
            topic = cluster.create_topic(partitions=3, replication_factor=3)
            cluster.node(2).kill()
            cluster.produce(topic, [("k", "while one is away")])
            cluster.node(2).start()
            cluster.wait_until_in_sync()
            cluster.expect(topic, [("k", "while one is away")])
        """
    )
    result = pytester.runpytest_subprocess(*ALONE)
    result.assert_outcomes(passed=5)


ASYNC_TEST = """
    import asyncio
    import pytest
    from confluent_kafka import Producer
    {mark}

    async def test_on_the_loop(strandline_async_broker):
        b = strandline_async_broker
        topic = await b.create_topic(partitions=2)
        blocking = Producer({{"bootstrap.servers": b.bootstrap}})
        blocking.produce(topic, b"from a client that blocks")
        assert blocking.flush(30) == 0, "it does not keep the broker from responding"
        await b.produce(topic, [("k", {{"n": 1}})])
        await b.expect(topic, [("k", {{"n": 1}}), "from a client that blocks"])
        assert len(await b.consume(topic)) == 2

    @pytest.mark.strandline_settings(num_partitions=3)
    async def test_has_settings_of_its_own(strandline_async_broker):
        written = await strandline_async_broker.produce("new", [(f"{{n}}", "v") for n in range(50)])
        assert {{each.partition for each in written}} == {{0, 1, 2}}
"""


@pytest.mark.parametrize(
    ("mark", "options"),
    [
        ("pytestmark = pytest.mark.asyncio", ("-p", "no:anyio")),
        ("", ("-p", "no:anyio", "-o", "asyncio_mode=auto")),
        ("pytestmark = pytest.mark.anyio", ("-p", "no:asyncio")),
        ("pytestmark = pytest.mark.anyio", ()),
    ],
    ids=["pytest-asyncio strict", "pytest-asyncio auto", "anyio", "anyio beside pytest-asyncio"],
)
def test_the_async_broker_works_with_every_plugin_for_async_tests(
    pytester: pytest.Pytester, mark: str, options: tuple[str, ...]
) -> None:
    pytester.makeconftest("import pytest\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n")
    pytester.makepyfile(ASYNC_TEST.format(mark=mark))
    result = pytester.runpytest_subprocess(*PLAIN, "-p", "no:xdist", *options)
    result.assert_outcomes(passed=2)


def test_workers_of_xdist_have_brokers_of_their_own_and_topics_do_not_meet(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from pathlib import Path

        @pytest.mark.parametrize("number", range(8))
        def test_writes(strandline_broker, strandline_topic_factory, strandline_topic, number, worker_id):
            made = strandline_topic_factory()
            strandline_broker.produce(made, [str(number)])
            strandline_broker.expect(made, [str(number)])
            strandline_broker.produce(strandline_topic, [str(number)])
            strandline_broker.expect(strandline_topic, [str(number)])
            Path(__file__).with_name(f"pid-{strandline_broker.pid}-{worker_id}").touch()
        """
    )
    result = pytester.runpytest_subprocess(*PLAIN, "-n", "2")
    result.assert_outcomes(passed=8)
    seen = [each.name.split("-")[1:] for each in Path(pytester.path).glob("pid-*")]
    assert len(seen) == len({pid for pid, _ in seen}) == len({worker for _, worker in seen}) == 2


@pytest.mark.parametrize(
    ("ini", "code", "said"),
    [
        ("num.partitions 3", "def test(strandline_broker): pass", "'num.partitions 3' is not KEY=VALUE"),
        ("num.partitions=0", "def test(strandline_broker): pass", "num.partitions"),
        ("", "import pytest\n@pytest.mark.strandline_settings('a=3')\ndef test(strandline_own_broker): pass",
         "name each setting, as in strandline_settings(num_partitions=3)"),
        ("", "import pytest\n@pytest.mark.strandline_settings(num_partitions=3)\ndef test(strandline_broker): pass",
         "has no effect on strandline_broker, which all tests share; use strandline_own_broker"),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_words(pytester: pytest.Pytester, ini: str, code: str, said: str) -> None:
    if ini:
        pytester.makeini(f"[pytest]\nstrandline_settings =\n    {ini}\n")
    pytester.makepyfile(code)
    result = pytester.runpytest_subprocess(*ALONE)
    assert result.ret != 0
    assert said in " ".join((result.stdout.str() + result.stderr.str()).split())


def test_mistakes_in_calls_are_told_in_words(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        def test_each(strandline_broker):
            b = strandline_broker
            with pytest.raises(TypeError, match=r"put it into \\[ \\]"):
                b.produce("t", "text")
            with pytest.raises(TypeError, match=r"put it into \\[ \\]"):
                b.expect("t", "text")
            with pytest.raises(TypeError, match="5 cannot be written: a value is bytes, text, None, or a dict"):
                b.produce("t", [5])
            with pytest.raises(TypeError, match=r"a tuple is \\(key, value\\)"):
                b.produce("t", [(1, 2, 3)])
            with pytest.raises(TypeError, match="5 cannot be compared with a record"):
                b.produce("t", ["x"])
                b.expect("t", [5])
            with pytest.raises(ValueError, match="bad topic!"):
                b.produce("bad topic!", ["x"])
        """
    )
    pytester.runpytest_subprocess(*ALONE).assert_outcomes(passed=1)
