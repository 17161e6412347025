"""JAAS entries, distinguished names, mapping rules, PLAIN and OAUTHBEARER."""

from __future__ import annotations

import pytest

from strandline.security.distinguished_name import distinguished_name
from strandline.security.exchange import GSSAPI, OAUTHBEARER, PLAIN, AuthenticationFailed
from strandline.security.jaas import parse_jaas
from strandline.security.login import login_of
from strandline.security.oauthbearer import OAuthBearerClient, OAuthBearerServer, VerifiedToken
from strandline.security.plain import PlainServer
from strandline.security.principal import user
from strandline.security.principal_mapping import NoRuleMatches, map_name, parse_rules

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_jaas_options_are_read_with_either_quotes_and_escapes() -> None:
    text = f"""{MODULE} required
        username="ali\\"ce" password='pa ss;=' user_bob=plain;"""
    entry = parse_jaas("sasl.jaas.config", text)
    assert entry.options == {"username": 'ali"ce', "password": "pa ss;=", "user_bob": "plain"}
    assert entry.users() == {"bob": "plain"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        MODULE,
        f'{MODULE} required password="topsecret"',
        f"{MODULE} required password=topsecret other;",
        f'{MODULE} maybe password="topsecret";',
        f'{MODULE} required password="topsecret"; {MODULE} required;',
        f'{MODULE} required password="topsecret;',
    ],
)
def test_jaas_that_cannot_be_read_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(ValueError, match=r"sasl\.jaas\.config") as refused:
        parse_jaas("sasl.jaas.config", text)
    assert "topsecret" not in str(refused.value)


def test_distinguished_name_is_written_as_java_writes_it() -> None:
    subject = (
        (("countryName", "DE"),),
        (("organizationName", "Strand, Line"),),
        (("organizationalUnitName", "a+b"),),
        (("commonName", "alice"), ("emailAddress", "a@b")),
    )
    expected = r"CN=alice+1.2.840.113549.1.9.1=#1603614062,OU=a\+b,O=Strand\, Line,C=DE"
    assert distinguished_name(subject) == expected


@pytest.mark.parametrize(
    ("rules", "name", "expected"),
    [
        ("DEFAULT", "CN=alice,O=x", "CN=alice,O=x"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=kafka,OU=ServiceUsers,O=x", "kafka"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/L,DEFAULT", "CN=Duke,OU=JavaSoft,O=Sun", "duke@javasoft"),
        ("RULE:^CN=(.*?)$/$1/U", "CN=duke", "DUKE"),
        ("RULE:^CN=([^,]*),.*$/$1/, DEFAULT", "O=other", "O=other"),
        ("", "CN=x", "CN=x"),
    ],
)
def test_mapping_rules(rules: str, name: str, expected: str) -> None:
    assert map_name(parse_rules(rules), name) == expected


def test_name_that_no_rule_matches_is_refused() -> None:
    with pytest.raises(NoRuleMatches):
        map_name(parse_rules("RULE:^CN=(.*),O=here$/$1/"), "CN=alice,O=there")


@pytest.mark.parametrize("rules", ["RULE:(/x/", "nonsense", "RULE:^CN=x$/$1/"])
def test_rules_that_make_no_sense_are_refused(rules: str) -> None:
    with pytest.raises(ValueError, match="principal"):
        parse_rules(rules)


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"\0alice\0wrong", "Invalid username or password"),
        (b"\0bob\0secret", "Invalid username or password"),
        (b"\0\0secret", "username not specified"),
        (b"\0alice\0", "password not specified"),
        (b"alice secret", "expected 3 tokens, got 1"),
        (b"bob\0alice\0secret", "different from username"),
        (b"\xff\0a\0b", "UTF-8"),
    ],
)
def test_plain_refuses(message: bytes, why: str) -> None:
    with pytest.raises(AuthenticationFailed, match=why):
        PlainServer(lambda name, password: (name, password) == ("alice", "secret")).step(message)


def test_plain_accepts() -> None:
    server = PlainServer(lambda name, password: (name, password) == ("alice", "secret"))
    assert server.step(b"alice\0alice\0secret") == b""
    assert server.principal == user("alice")


def test_token_that_is_refused_is_acknowledged_before_the_login_fails() -> None:
    def refuse(token: str) -> VerifiedToken:
        raise AuthenticationFailed("expired")

    server, client = OAuthBearerServer(refuse), OAuthBearerClient("t.o.k")
    reply = client.step(server.step(client.first()))
    assert reply == b"\x01"
    with pytest.raises(AuthenticationFailed, match="expired"):
        server.step(reply)


def test_gssapi_is_refused_with_the_setting_that_names_others() -> None:
    with pytest.raises(ValueError, match=r"sasl\.enabled\.mechanisms"):
        login_of(GSSAPI, "sasl.jaas.config", None, lambda: "n")


def test_login_without_options_says_how_to_write_them() -> None:
    with pytest.raises(ValueError, match="PlainLoginModule required username"):
        login_of(PLAIN, "sasl.jaas.config", None, lambda: "n")


def test_login_shows_no_secret() -> None:
    login = login_of(OAUTHBEARER, "k", None, lambda: "n", lambda: "secret")
    assert "secret" not in repr(login)
