"""A mirror into a cluster with TLS and a login, by the settings of its clients."""

from __future__ import annotations

from pathlib import Path

from strandline.testing.process import BrokerProcess, running_broker
from tests.mirror.scene import scene


def test_flow_reaches_a_target_with_tls_and_login(east: BrokerProcess, tmp_path: Path) -> None:
    with (
        running_broker(security="SASL_SSL", group_min_session_timeout_ms=1000) as secured,
        scene(tmp_path, east=east.bootstrap, west=secured.bootstrap) as two,
    ):
        two.create_topic("east", "secret", 1)
        two.produce("east", "secret", ["a", "b"])
        settings = {f"west.{key}": str(value) for key, value in secured.client_settings.items()}
        config = two.config({"east->west.enabled": "true", "east->west.topics": "secret", **settings})
        two.librdkafka["west"] = secured.librdkafka_settings
        two.mirror(config).start()

        assert [m.value() for m in two.read("west", "east.secret", 2)] == [b"a", b"b"]
