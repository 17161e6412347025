"""Settings that promise a protection which would not be there, or that would lock everybody out, stop the start."""

from __future__ import annotations

import pytest

from strandline.broker.security.start_checks import check_security
from strandline.config import BrokerConfig, InvalidConfig

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
PLAIN_KEY = "listener.name.clients.plain.sasl.jaas.config"


def node(**more: str) -> BrokerConfig:
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": "1@localhost:9093",
        "controller.listener.names": "CONTROLLER",
        "listeners": "CLIENTS://localhost:9092,CONTROLLER://localhost:9093",
        "listener.security.protocol.map": "CLIENTS:SASL_SSL,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "CLIENTS",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        PLAIN_KEY: 'PlainLoginModule required user_alice="topsecret";',
    }
    return BrokerConfig.from_strings(
        settings | {name.replace("__", "."): text for name, text in more.items()}
    )


def test_settings_that_let_users_in_are_accepted() -> None:
    check_security(node())
    check_security(node(sasl__enabled__mechanisms="PLAIN,SCRAM-SHA-256"))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"authorizer__class__name": "com.example.Own"}, "there is no other authorizer"),
        ({"authorizer__class__name": STANDARD, "super__users": "alice"}, "write User:name"),
        (
            {"authorizer__class__name": STANDARD, "allow__everyone__if__no__acl__found": "yes"},
            "true or false",
        ),
        (
            {
                "authorizer__class__name": STANDARD,
                "super__users": "User:admin",
                "controller__quorum__voters": "1@localhost:9093,2@localhost:9094",
                "listener__security__protocol__map": "CLIENTS:SASL_SSL,CONTROLLER:PLAINTEXT",
            },
            "as User:ANONYMOUS, which is no super user.*User:admin;User:ANONYMOUS",
        ),
        ({"sasl__enabled__mechanisms": "GSSAPI,PLAIN"}, r"GSSAPI \(Kerberos\).*sasl\.enabled\.mechanisms"),
        ({"sasl__enabled__mechanisms": "PLAIN,MAGIC"}, "MAGIC is not a SASL mechanism"),
        ({PLAIN_KEY: "PlainLoginModule required;"}, "nobody could log in"),
        ({PLAIN_KEY: 'PlainLoginModule required user_a="topsecret"'}, "semicolon"),
        ({"sasl__enabled__mechanisms": "PLAIN,OAUTHBEARER"}, r"sasl\.oauthbearer\.jwks\.endpoint\.url"),
        ({"ssl__principal__mapping__rules": "nonsense"}, "is no rule"),
        (
            {
                "controller__quorum__voters": "1@localhost:9093,2@localhost:9094",
                "listener__security__protocol__map": "CLIENTS:SASL_SSL,CONTROLLER:SASL_SSL",
                "listener__name__controller__plain__sasl__jaas__config": "P required user_a=x;",
                "sasl__mechanism__controller__protocol": "SCRAM-SHA-256",
            },
            "reads only after it has logged in",
        ),
    ],
)
def test_settings_that_would_lock_out_or_leave_open_are_refused(more: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidConfig, match=why) as refused:
        check_security(node(**more))
    assert "topsecret" not in str(refused.value)
