"""The listener of controllers: a user without any rights gets the response of Apache Kafka, for every API key.

Requests of nodes have no contents here: nobody looks at them before it is known who sent them.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from strandline.broker.api.table import TABLE
from strandline.cli.main import main
from strandline.testing.clusters import free_ports
from strandline.testing.process import BrokerProcess
from strandline.wire.api.k18_api_versions import ApiVersionsRequest
from strandline.wire.api_index import API_INDEX
from strandline.wire.schema import Request
from tests.compat.acl_brokers import compared, logged_in, settings
from tests.compat.acl_probes import every_probe
from tests.oracle.apache_kafka import QUICK_START, ApacheKafka

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]

CLUSTER_AUTHORIZATION_FAILED = 31
# DescribeDelegationToken and DescribeUserScramCredentials: Kafka's controllers announce them, and fail with
# UNKNOWN_SERVER_ERROR for every user; ours respond.
FAILING = {41: 0, 50: CLUSTER_AUTHORIZATION_FAILED}
UNKNOWN_SERVER_ERROR = -1
_BLANK: dict[str, Any] = {"string": "", "bytes": b"", "records": b"", "uuid": bytes(16), "array": ()}


def blank(cls: type[Any]) -> Any:
    """Returns a message with empty fields."""
    fields = {}
    for field in cls.FIELDS:
        if field.is_required:
            is_struct = field.type.name == "struct"
            fields[field.name] = blank(field.type.element) if is_struct else _BLANK.get(field.type.name, 0)
    return cls(**fields)


def requests_of_nodes() -> Iterator[tuple[str, Request, int]]:
    for row in TABLE.values():
        if row.is_served_on(controller_listener=True) and not row.is_served_on(controller_listener=False):
            module = import_module(f"strandline.wire.api.{API_INDEX[row.key].module}")
            request = blank(getattr(module, f"{row.name}Request"))
            yield f"{row.name} v{row.version_max}", request, row.version_max


def requests_of_clients() -> Iterator[tuple[str, Request, int]]:
    for probe in every_probe(bytes(16), 0):
        if TABLE[probe.request.API_KEY].is_served_on(controller_listener=True):
            yield probe.name, probe.request, probe.version


class Controllers:
    """The same listener of both."""

    def __init__(self, oracle: str, strandline: str) -> None:
        self._addresses = (oracle, strandline)

    def responses(self, request: Request, version: int) -> tuple[Any, Any]:
        """To alice, who may do nothing; "closed" where the connection is."""
        found = []
        for address in self._addresses:
            with logged_in(address, "alice") as client:
                try:
                    found.append(compared(client.call(request, version)))
                except (ConnectionError, EOFError, AssertionError):
                    found.append("closed")
        return found[0], found[1]

    def announced(self) -> tuple[set[int], set[int]]:
        keys = []
        for address in self._addresses:
            with logged_in(address, "alice") as client:
                response: Any = client.call(ApiVersionsRequest(), 3)
                keys.append({each.api_key for each in response.api_keys})
        return keys[0], keys[1]


@pytest.fixture(scope="module")
def controllers(
    java: Path, kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Controllers]:
    home = tmp_path_factory.mktemp("controllers")
    sasl, plain, port = free_ports(3)
    kafka = ApacheKafka(
        java=java,
        jars=kafka_jars,
        directory=home / "kafka",
        jvm_options=QUICK_START,
        settings=settings(sasl, plain, port) | {"controller.quorum.voters": f"1@127.0.0.1:{port}"},
        broker_port=plain,
    )
    own_sasl, own_plain, own_port = free_ports(3)
    own = BrokerProcess(home / "strandline")
    own.settings |= settings(own_sasl, own_plain, own_port)
    # Others may come to this quorum: otherwise the listener would not be opened.
    del own.settings["controller.quorum.voters"]
    own.settings["controller.quorum.bootstrap.servers"] = f"127.0.0.1:{own_port}"
    properties = home / "server.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in own.settings.items()))
    with kafka:
        assert main(["format", "--config", str(properties), "--standalone"]) == 0
        own.start()
        try:
            yield Controllers(f"127.0.0.1:{port}", f"127.0.0.1:{own_port}")
        finally:
            own.stop()


def test_every_request_of_a_node_is_denied_alike(controllers: Controllers) -> None:
    names = set()
    for name, request, version in requests_of_nodes():
        oracle, strandline = controllers.responses(request, version)
        assert strandline == oracle, name
        assert CLUSTER_AUTHORIZATION_FAILED in codes_in(strandline), name
        names.add(name)
    assert len(names) >= 11


def test_every_request_of_a_client_is_responded_to_alike(controllers: Controllers) -> None:
    keys, different = set(), []
    for name, request, version in requests_of_clients():
        oracle, strandline = controllers.responses(request, version)
        keys.add(request.API_KEY)
        if request.API_KEY in FAILING:
            assert UNKNOWN_SERVER_ERROR in codes_in(oracle)
            assert FAILING[request.API_KEY] in codes_in(strandline)
        elif strandline != oracle:
            different.append((name, oracle, strandline))
    assert not different
    assert len(keys) >= 20


def test_the_same_apis_are_announced(controllers: Controllers) -> None:
    oracle, strandline = controllers.announced()
    assert strandline == oracle


def codes_in(found: Any) -> set[int]:
    if isinstance(found, list | tuple):
        if len(found) == 2 and isinstance(found[0], str) and found[0].endswith("error_code"):
            return {found[1]}
        return {code for each in found for code in codes_in(each)}
    return set()
