"""Presets at work: a cluster, a topic, a producer and a consumer that have one."""

from __future__ import annotations

import json
from pathlib import Path

from strandline.cli.exit_codes import DONE
from strandline.client.admin.configs import ConfigResource, ResourceType
from strandline.client.sync import Admin
from tests.system.commands import command


def ran(*arguments: str) -> list[str]:
    with command(*arguments) as running:
        status = running.wait()
    assert status == DONE, running.err
    return running.out


def test_a_cluster_its_topics_and_clients_have_the_settings_of_their_preset(tmp_path: Path) -> None:
    up = ("up", "--nodes", "3", "--port", "0", "--no-registry", "--ephemeral", "--preset", "balanced")
    with command(*up, "--set", "replica.lag.time.max.ms=9000") as running:
        bootstrap = running.wait_for("bootstrap.servers").split(maxsplit=1)[1]
        at = ("-b", bootstrap)
        ran("topics", "create", "by-default", *at)
        ran("topics", "create", "fast", "--preset", "high-throughput", "-c", "min.insync.replicas=2", *at)
        with Admin({"bootstrap.servers": bootstrap}) as admin:
            topics = admin.describe_topics(["by-default", "fast"])
            assert {name: len(topics[name].partitions[0].replicas) for name in topics} == {
                "by-default": 3,
                "fast": 2,
            }
            resources = [
                ConfigResource(ResourceType.TOPIC, "by-default"),
                ConfigResource(ResourceType.TOPIC, "fast"),
                ConfigResource(ResourceType.BROKER, "1"),
            ]
            default, fast, broker = admin.describe_configs(resources).values()
        assert default["min.insync.replicas"].value == "2"
        assert fast["min.insync.replicas"].value == "2"  # said by itself
        assert fast["unclean.leader.election.enable"].value == "true"
        assert broker["replica.lag.time.max.ms"].value == "9000"  # said by itself
        lines = tmp_path / "lines"
        lines.write_text("one\ntwo\n")
        sent = ran("produce", "fast", str(lines), "--preset", "high-throughput", "--json", *at)
        assert json.loads(sent[0])["sent"] == 2
        assert ran("consume", "fast", "--exit", "--preset", "critical", "--group", "g", *at) == ["one", "two"]
