"""SCRAM against scramp, an implementation of its own, and against sides that cheat."""

from __future__ import annotations

from base64 import b64encode

import pytest
import scramp

from strandline.security.exchange import SCRAM_SHA_256, SCRAM_SHA_512, AuthenticationFailed
from strandline.security.principal import user
from strandline.security.scram import (
    ScramClient,
    ScramSecret,
    ScramServer,
    StoredCredential,
    credential_for,
)

MECHANISMS = (SCRAM_SHA_256, SCRAM_SHA_512)
SALT = b"salt-of-twenty-six-bytes!!"
NAMES = ("alice", "a,b=c", "Zoë")


def server(
    mechanism: str, name: str = "alice", password: str = "secret", iterations: int = 4096
) -> ScramServer:
    credential = credential_for(mechanism, password, SALT, iterations)
    known = {name: credential}
    return ScramServer(mechanism, known.get, lambda _: None, "servernonce", b"decoy")


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", NAMES)
def test_both_sides_agree(mechanism: str, name: str) -> None:
    ours = server(mechanism, name)
    client = ScramClient(ScramSecret(mechanism, name, "secret"), "clientnonce")
    final = client.step(ours.step(client.first()))
    assert final is not None
    assert client.step(ours.step(final)) is None
    assert ours.principal == user(name)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_scramp_logs_in_to_our_server(mechanism: str) -> None:
    ours = server(mechanism)
    theirs = scramp.ScramClient([mechanism], "alice", "secret")
    theirs.set_server_first(ours.step(theirs.get_client_first().encode()).decode())
    theirs.set_server_final(ours.step(theirs.get_client_final().encode()).decode())
    assert ours.principal == user("alice")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_our_client_logs_in_to_scramp(mechanism: str) -> None:
    theirs = scramp.ScramMechanism(mechanism)
    stored = theirs.make_auth_info("secret", iteration_count=4096)
    session = theirs.make_server(lambda name: stored)
    client = ScramClient(ScramSecret(mechanism, "alice", "secret"), "clientnonce")
    session.set_client_first(client.first().decode())
    final = client.step(session.get_server_first().encode())
    assert final is not None
    session.set_client_final(final.decode())
    assert client.step(session.get_server_final().encode()) is None


@pytest.mark.parametrize(("name", "password"), [("alice", "wrong"), ("nobody", "secret")])
def test_wrong_password_and_unknown_user_fail_alike(name: str, password: str) -> None:
    ours = server(SCRAM_SHA_256)
    client = ScramClient(ScramSecret(SCRAM_SHA_256, name, password), "clientnonce")
    final = client.step(ours.step(client.first()))
    assert final is not None
    with pytest.raises(AuthenticationFailed, match="invalid credentials") as failed:
        ours.step(final)
    assert password not in str(failed.value)
    assert ours.principal is None


def test_unknown_user_has_the_same_salt_each_time() -> None:
    first = server(SCRAM_SHA_256).step(b"n,,n=nobody,r=x")
    again = server(SCRAM_SHA_256).step(b"n,,n=nobody,r=x")
    assert first == again


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xff\xfe",
        b"n,,",
        b"n,,n=alice",
        b"n,,n=,r=x",
        b"n,,n=alice,r=",
        b"n,,n=al=ice,r=x",
        b"n,a=bob,n=alice,r=x",
        b"p=tls-unique,,n=alice,r=x",
        b"n,,n=alice,n=bob,r=x",
    ],
)
def test_malformed_first_message_is_refused(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        server(SCRAM_SHA_256).step(message)


@pytest.mark.parametrize("change", ["nonce", "binding", "proof", "short proof"])
def test_final_message_that_was_changed_is_refused(change: str) -> None:
    ours = server(SCRAM_SHA_256)
    client = ScramClient(ScramSecret(SCRAM_SHA_256, "alice", "secret"), "clientnonce")
    final = client.step(ours.step(client.first()))
    assert final is not None
    changed = {
        "nonce": final.replace(b"servernonce", b"othernonce!"),
        "binding": final.replace(b"c=biws", b"c=eSws"),
        "proof": final[:-8] + b"AAAAAAA=",
        "short proof": final.rpartition(b",p=")[0] + b",p=AAAA",
    }[change]
    with pytest.raises(AuthenticationFailed):
        ours.step(changed)


def test_credential_with_too_few_iterations_is_not_accepted() -> None:
    ours = server(SCRAM_SHA_256, iterations=1000)
    client = ScramClient(ScramSecret(SCRAM_SHA_256, "alice", "secret"), "clientnonce")
    final = client.step(ours.step(client.first()))
    assert final is not None
    with pytest.raises(AuthenticationFailed):
        ours.step(final)


@pytest.mark.parametrize(
    ("challenge", "why"),
    [
        (b"r=other,s=c2FsdA==,i=4096", "nonce"),
        (b"r=clientnonce,s=c2FsdA==,i=4096", "nonce"),
        (b"r=clientnonceX,s=c2FsdA==,i=1", "iterations"),
        (b"r=clientnonceX,s=c2FsdA==,i=2000000000", "iterations"),
        (b"r=clientnonceX,s=!,i=4096", "is malformed"),
        (b"nothing", "is malformed"),
    ],
)
def test_client_refuses_a_server_that_cheats(challenge: bytes, why: str) -> None:
    client = ScramClient(ScramSecret(SCRAM_SHA_256, "alice", "secret"), "clientnonce")
    with pytest.raises(AuthenticationFailed, match=why):
        client.step(challenge)


def test_client_refuses_a_server_that_does_not_know_the_credential() -> None:
    ours = server(SCRAM_SHA_256)
    client = ScramClient(ScramSecret(SCRAM_SHA_256, "alice", "secret"), "clientnonce")
    assert client.step(ours.step(client.first())) is not None
    with pytest.raises(AuthenticationFailed, match="did not prove"):
        client.step(b"v=" + b64encode(bytes(32)))


def test_credentials_do_not_show_in_repr() -> None:
    credential = credential_for(SCRAM_SHA_256, "secret", SALT, 4096)
    assert repr(credential) == "StoredCredential(iterations=4096)"
    assert isinstance(credential, StoredCredential)
