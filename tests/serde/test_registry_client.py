"""The registry's client: TLS, logins, several instances, limits of its caches, settings that cannot be used."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from strandline.ports.web import WebError, WebResponse
from strandline.serde import (
    AvroDeserializer,
    AvroSerializer,
    RegistryRefused,
    RegistryUnavailable,
    Schema,
    SchemaRegistry,
    UnknownSchema,
    deserializer_for,
    serializer_for,
)
from strandline.serde.framing import read_indexes, write_indexes
from strandline.testing import RegistryProcess, running_broker, running_registry
from tests.serde.failing_web import FailingWeb

USER = '{"type":"record","name":"User","fields":[{"name":"name","type":"string"}]}'


def test_a_registry_with_tls_and_a_login(tmp_path: Path) -> None:
    with running_broker(security="SASL_SSL") as broker:
        security = broker.security
        assert security is not None
        assert security.server is not None
        arguments = ["--command-config", str(security.write_client_properties(broker.bootstrap))]
        for setting in (
            "authentication.method=BASIC",
            f"ssl.keystore.location={security.server.key_store}",
            f"ssl.truststore.location={security.server.authority}",
        ):
            arguments += ["--set", setting]
        with running_registry(broker.bootstrap, tmp_path / "log", *arguments) as process:
            trusted = {
                "url": process.url,
                "ssl.ca.location": str(security.server.authority),
                "max.retries": 0,
            }
            login = f"{security.user}:{security.password}"
            settings = {**trusted, "basic.auth.user.info": login}
            data = AvroSerializer(settings, USER).serialize("t", {"name": "Ada"})
            assert AvroDeserializer(settings).deserialize("t", data) == {"name": "Ada"}
            named = {**trusted, "url": process.url.replace("https://", f"https://{login}@")}
            assert AvroDeserializer(named).deserialize("t", data) == {"name": "Ada"}
            with pytest.raises(RegistryRefused, match=r"basic\.auth\.user\.info") as refused:
                AvroDeserializer({**trusted, "basic.auth.user.info": "alice:wrong"}).deserialize("t", data)
            assert refused.value.status == 401
            with pytest.raises(RegistryUnavailable, match="certificate"):
                AvroDeserializer({"url": process.url, "max.retries": 0}).deserialize("t", data)


async def test_several_who_need_the_same_make_one_request(strandline_registry: RegistryProcess) -> None:
    web = FailingWeb()
    registry = SchemaRegistry(strandline_registry.url, web=web)
    await asyncio.gather(*(registry.register("shared-value", Schema(USER)) for _ in range(20)))
    assert len(web.requests) == 1


async def test_caches_forget_the_oldest(strandline_registry: RegistryProcess) -> None:
    web = FailingWeb()
    registry = SchemaRegistry({"url": strandline_registry.url, "cache.capacity": 2}, web=web)
    for number in (1, 2, 3, 3, 2, 1):
        await registry.register(f"cached-{number}", Schema(USER))
    assert len(web.requests) == 4, "the third pushed the first out, and the others were known"


class ScriptedWeb:
    """Responds by URL; a number is a status, None is nobody."""

    def __init__(self, statuses: dict[str, list[int | None]]) -> None:
        self.statuses = statuses
        self.asked: list[str] = []

    async def request(self, method: str, url: str, **more: Any) -> WebResponse:
        host = url.partition("//")[2].partition("/")[0]
        self.asked.append(host)
        status = self.statuses[host].pop(0)
        if status is None:
            raise WebError("nobody")
        body: Any = {"schema": USER, "id": 1}
        if status >= 300:
            body = {"error_code": 40403 if status == 404 else status, "message": "no"}
        return WebResponse(status, {}, json.dumps(body).encode())


def scripted(**statuses: list[int | None]) -> tuple[SchemaRegistry, ScriptedWeb]:
    web = ScriptedWeb(statuses)
    settings = {"url": ",".join(f"http://{host}" for host in statuses), "retries.wait.ms": 1}
    return SchemaRegistry(settings, web=web), web


async def test_the_next_instance_is_asked_and_stays_the_first() -> None:
    registry, web = scripted(one=[None], two=[200, 200])
    await registry.by_id(1)
    await registry.by_id(2)
    assert web.asked == ["one", "two", "two"]


async def test_a_registry_that_cannot_serve_now_is_asked_again() -> None:
    registry, web = scripted(one=[503, None, 429, 200])
    assert (await registry.by_id(1)).schema.text == USER
    registry, web = scripted(one=[503] * 4)
    with pytest.raises(RegistryUnavailable, match="503"):
        await registry.by_id(1)
    assert len(web.asked) == 4


async def test_an_id_is_unknown_only_when_it_stays_unknown() -> None:
    registry, _ = scripted(one=[404, 404, 200])
    assert (await registry.by_id(1)).schema.text == USER
    registry, _ = scripted(one=[404, 404, 404])
    with pytest.raises(UnknownSchema):
        await registry.by_id(1)
    registry, _ = scripted(one=[403])
    with pytest.raises(RegistryRefused):
        await registry.by_id(1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "url is missing"),
        ({"url": "ftp://host"}, "http://host:port"),
        ({"url": "http://host", "urls": "x"}, "urls is no setting"),
        ({"url": "http://host", "timeout": "soon"}, "timeout must be a number"),
        ({"url": "http://a:b@host", "bearer.auth.token": "t"}, "one login is enough"),
    ],
)
def test_unusable_settings_are_errors(settings: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        SchemaRegistry(settings)


def test_contradictory_options_are_errors() -> None:
    for options, words in (
        ({}, "a schema is missing"),
        ({"schema": USER, "framing": "trailer"}, "framing"),
        ({"use_latest_version": True, "auto_register_schemas": True}, "auto_register_schemas"),
        ({"use_latest_version": True, "use_schema_id": 1}, "use_schema_id"),
        ({"schema": USER, "subject_name_strategy": "nobody"}, "subject_name_strategy"),
    ):
        with pytest.raises(ValueError, match=words):
            AvroSerializer("http://host", **options)  # type: ignore[arg-type]


def test_a_class_in_place_of_an_object_is_an_error() -> None:
    with pytest.raises(ValueError, match="make an object of it"):
        serializer_for(AvroSerializer, "value.serializer")
    with pytest.raises(ValueError, match="make an object of it"):
        deserializer_for(AvroDeserializer, "value.deserializer")


@pytest.mark.parametrize("path", [(0,), (1,), (1, 0, 3), (200, 70_000)])
def test_paths_to_messages_go_and_return(path: tuple[int, ...]) -> None:
    data = write_indexes(path)
    assert read_indexes(data + b"rest", 0) == (path, len(data))
