"""`up --set listeners=…`: settings that people give are completed, so that the first error is the true one."""

from __future__ import annotations

from strandline.node.launcher import embedded_settings


def settings(**given: str) -> dict[str, str]:
    return embedded_settings(
        port=9092, data="data", given={key.replace("_", "."): value for key, value in given.items()}
    )


def test_a_listener_gets_its_protocol_the_controllers_beside_it_and_is_advertised() -> None:
    found = settings(listeners="SASL_PLAINTEXT://127.0.0.1:19413")
    assert found["listeners"] == "SASL_PLAINTEXT://127.0.0.1:19413,CONTROLLER://localhost:0"
    assert found["advertised.listeners"] == "SASL_PLAINTEXT://127.0.0.1:19413"
    assert found["inter.broker.listener.name"] == "SASL_PLAINTEXT"
    assert "SASL_PLAINTEXT:SASL_PLAINTEXT" in found["listener.security.protocol.map"]


def test_settings_that_decide_it_themselves_stay_as_they_are() -> None:
    own = "INSIDE://127.0.0.1:1,CONTROLLER://127.0.0.1:2"
    found = settings(listeners=own, listener_security_protocol_map="INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT")
    assert found["listeners"] == own
    assert "inter.broker.listener.name" not in found
    given = settings(listeners="SSL://h:1,CONTROLLER://h:2", advertised_listeners="SSL://other:1")
    assert given["listeners"] == "SSL://h:1,CONTROLLER://h:2"
    assert given["advertised.listeners"] == "SSL://other:1"
