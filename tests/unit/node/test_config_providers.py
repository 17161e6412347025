"""Settings that are filled in from the environment, from files and from directories, as Apache Kafka does it."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.config import BrokerConfig, InvalidConfig
from strandline.node.config_providers import broker_config
from tests.unit.config.settings import ONE_NODE

PACKAGE = "org.apache.kafka.common.config.provider"
PROVIDERS = {
    "config.providers": "env, file,directory",
    "config.providers.env.class": f"{PACKAGE}.EnvVarConfigProvider",
    "config.providers.file.class": f"{PACKAGE}.FileConfigProvider",
    "config.providers.directory.class": f"{PACKAGE}.DirectoryConfigProvider",
}


def config_with(rack: str, **parameters: str) -> BrokerConfig:
    """`parameters` as `env_allowlist_pattern` for config.providers.env.param.allowlist.pattern."""
    given = {}
    for name, value in parameters.items():
        provider, _, parameter = name.partition("_")
        given[f"config.providers.{provider}.param.{parameter.replace('_', '.')}"] = value
    return broker_config({**ONE_NODE, **PROVIDERS, **given, "broker.rack": rack})


def rack_of(rack: str, **parameters: str) -> str | None:
    return config_with(rack, **parameters).optional_text("broker.rack")


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RACK", "r7")
    (tmp_path / "some.properties").write_text("rack = r8\na\\:b=c\nnested=${env:RACK}\n")
    (tmp_path / "rack").write_text("r9")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "rack").write_text("r10")
    return tmp_path


def test_the_three_providers_fill_in_variables_anywhere_in_a_value(secrets: Path) -> None:
    assert rack_of("${env:RACK}") == "r7"
    assert rack_of(f"${{file:{secrets}/some.properties:rack}}") == "r8"
    assert rack_of(f"${{file:{secrets}/some.properties:a:b}}") == "c", "a key may have colons"
    assert rack_of(f"${{directory:{secrets}:rack}}") == "r9"
    assert rack_of(f"x-${{env:RACK}}-${{directory:{secrets}:rack}}") == "x-r7-r9"
    assert config_with("${env:RACK}").warnings == ()


def test_a_filled_in_value_is_checked_and_not_searched_for_variables_again(
    secrets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rack_of(f"${{file:{secrets}/some.properties:nested}}") == "${env:RACK}"
    monkeypatch.setenv("COUNT", "0")
    with pytest.raises(InvalidConfig, match=r"num\.partitions"):
        broker_config({**ONE_NODE, **PROVIDERS, "num.partitions": "${env:COUNT}"})


@pytest.mark.parametrize(
    ("rack", "reason"),
    [
        ("${env:NOT_THERE}", "no such value"),
        ("${file:HOME/some.properties:none}", "no such value"),
        ("${file:rack}", "no such value"),
        ("${directory:HOME:none}", "no such value"),
        ("${directory:HOME:sub}", "no such value"),
        ("${directory:HOME:sub/rack}", "no such value"),
        ("${directory:HOME/none:rack}", "no such value"),
        ("${vault:secret:rack}", "config.providers does not name vault"),
    ],
)
def test_a_variable_without_a_value_stays_as_it_is_and_is_warned_of(
    rack: str, reason: str, secrets: Path
) -> None:
    written = rack.replace("HOME", str(secrets))
    config = config_with(written)
    assert config.optional_text("broker.rack") == written
    (warning,) = config.warnings
    assert warning.key == "broker.rack"
    assert warning.message.startswith(f"{written} is taken as it is written: ")
    assert reason in warning.message


def test_a_provider_without_a_class_is_warned_of() -> None:
    (warning,) = broker_config({**ONE_NODE, "config.providers": "env", "broker.rack": "${env:RACK}"}).warnings
    assert "config.providers.env.class is not set" in warning.message


def test_only_what_is_allowed_is_read(secrets: Path) -> None:
    rack = "${env:RACK}"
    assert rack_of(rack, env_allowlist_pattern="RA.*") == "r7"
    assert rack_of(rack, env_allowlist_pattern="RA") == rack, "all of the name has to match"
    for provider, place in (("file", f"{secrets}/some.properties"), ("directory", str(secrets))):
        rack = f"${{{provider}:{place}:rack}}"
        name = f"{provider}_allowed_paths"
        assert rack_of(rack, **{name: f"{secrets}/sub,{secrets}"}) in ("r8", "r9")
        assert rack_of(rack, **{name: "/"}) in ("r8", "r9")
        assert rack_of(rack, **{name: f"{secrets}/sub"}) == rack
        out = f"${{{provider}:{secrets}/sub/../{place.removeprefix(str(secrets))}:rack}}"
        assert rack_of(out, **{name: f"{secrets}/sub"}) == out
    (secrets / "subs").mkdir()
    (secrets / "subs" / "rack").write_text("r11")
    beside = f"${{directory:{secrets}/subs:rack}}"
    assert rack_of(beside, directory_allowed_paths=f"{secrets}/sub") == beside


def test_a_variable_that_cannot_be_looked_up_is_refused_with_the_key_that_has_it(secrets: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"broker\.rack: .*none\.properties cannot be read: No such file"):
        config_with(f"${{file:{secrets}/none.properties:rack}}")
    with pytest.raises(InvalidConfig, match=r"broker\.rack: variables of the environment have no path"):
        config_with("${env:some:RACK}")
    (secrets / "rack").write_bytes(b"\xff")
    with pytest.raises(InvalidConfig, match="rack is not in UTF-8"):
        config_with(f"${{directory:{secrets}:rack}}")


@pytest.mark.parametrize(
    ("parameter", "value", "reason"),
    [
        ("env_allowlist_pattern", "(", "unterminated"),
        ("file_allowed_paths", "secrets", "secrets in allowed.paths is not absolute"),
        ("directory_allowed_paths", "/no/such/place", "/no/such/place in allowed.paths does not exist"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameter: str, value: str, reason: str) -> None:
    with pytest.raises(InvalidConfig, match=reason) as refused:
        config_with("r1", **{parameter: value})
    assert str(refused.value).startswith(f"config.providers.{parameter.partition('_')[0]}.param")


def test_a_provider_that_is_not_known_is_refused() -> None:
    given = {"config.providers": "vault", "config.providers.vault.class": "org.example.Vault"}
    with pytest.raises(InvalidConfig) as refused:
        broker_config({**ONE_NODE, **given})
    assert str(refused.value).startswith("config.providers.vault.class: Java classes of one's own cannot")
    assert f"given: org.example.Vault; allowed: {PACKAGE}.EnvVarConfigProvider" in str(refused.value)
