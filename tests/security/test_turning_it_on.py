"""A cluster without security gets secured listeners, one node at a time and under load; in a soak it goes back the same
way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from strandline.node.development_security import DevelopmentSecurity
from strandline.testing.clusters import Cluster, ClusterNode, cluster, free_ports
from tests.properties.effort import IS_SOAK, in_soak
from tests.security.load import Load, check_nothing_lost, in_sync
from tests.waiting import eventually

TOPIC = "orders"
Change = Callable[[ClusterNode], None]


def secured_port(node: ClusterNode, ports: dict[int, int]) -> str:
    return f"SASL_SSL://127.0.0.1:{ports[node.node_id]}"


def roll(nodes: Cluster, change: Change, load: Load, settings: dict[str, str]) -> None:
    """Changes and restarts one node after the other; the next one when all replicas are in sync again."""
    for node in nodes.nodes:
        load.wait_for_more()
        change(node)
        assert node.stop() == 0
        node.start()
        eventually(lambda: in_sync(settings, TOPIC))


@in_soak
def test_security_is_turned_on_and_off_again_under_load(tmp_path: Path) -> None:
    security = DevelopmentSecurity(tmp_path / "security", "SASL_SSL", "PLAIN")
    with cluster(nodes=3) as nodes:
        ports = dict(zip((1, 2, 3), free_ports(3), strict=True))
        plain = {"bootstrap.servers": nodes.bootstrap}
        secured = {
            "bootstrap.servers": ",".join(f"127.0.0.1:{port}" for port in ports.values()),
            **security.librdkafka_settings(),
        }
        admin = AdminClient(plain)
        admin.create_topics([NewTopic(TOPIC, 3, 3)])[TOPIC].result(30)
        original = {node.node_id: dict(node.settings) for node in nodes.nodes}

        def add_listener(node: ClusterNode) -> None:
            own = original[node.node_id]
            wanted = security.broker_settings(own)
            node.settings.update({key: value for key, value in wanted.items() if key not in own})
            for key in ("listeners", "advertised.listeners"):
                node.settings[key] = f"{own[key]},{secured_port(node, ports)}"
            protocols = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL"
            node.settings["listener.security.protocol.map"] = protocols
            node.settings["inter.broker.listener.name"] = "PLAINTEXT"

        def switch_brokers(node: ClusterNode) -> None:
            node.settings["inter.broker.listener.name"] = "SASL_SSL"

        def remove_plain(node: ClusterNode) -> None:
            for key in ("listeners", "advertised.listeners"):
                kept = [each for each in node.settings[key].split(",") if not each.startswith("PLAINTEXT")]
                node.settings[key] = ",".join(kept)

        def restore(node: ClusterNode) -> None:
            node.settings.clear()
            node.settings.update(original[node.node_id])

        def both(node: ClusterNode) -> None:
            add_listener(node)
            switch_brokers(node)

        loads = [Load(plain, TOPIC, "plain-")]
        try:
            roll(nodes, add_listener, loads[0], plain)
            loads.append(Load(secured, TOPIC, "secured-"))
            roll(nodes, switch_brokers, loads[1], secured)
            loads[0].stop()
            roll(nodes, remove_plain, loads[1], secured)
            loads[1].wait_for_more()
            if IS_SOAK:  # and back
                roll(nodes, both, loads[1], secured)
                loads.append(Load(plain, TOPIC, "again-"))
                roll(nodes, add_listener, loads[2], plain)
                loads[1].stop()
                roll(nodes, restore, loads[2], plain)
                loads[2].wait_for_more()
        finally:
            for load in loads:
                load.stop()
        check_nothing_lost(plain if IS_SOAK else secured, TOPIC, loads)
        for node in nodes.nodes:
            assert "Traceback" not in node.log_text
