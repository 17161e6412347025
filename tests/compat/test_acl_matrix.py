"""Principal × operation × resource × pattern × host × API key: the same in every cell as from Apache Kafka.

Each case is a few rules; each API key is asked with them by a user, by the same user from another address, and by
somebody who has not logged in. `make soak` tries every case.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.testing.clusters import free_ports
from strandline.testing.process import BrokerProcess
from tests.compat.acl_brokers import AuthorizedBroker, settings
from tests.compat.acl_cases import Case, combined_cases, every_case
from tests.oracle.apache_kafka import QUICK_START, ApacheKafka
from tests.properties.effort import IS_SOAK

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]

_SAMPLED = 12
_COMBINED = 400 if IS_SOAK else 12
# A soak tries all of them in parts, each within the time that a test may take.
_PARTS = 44 if IS_SOAK else 1


@pytest.fixture(scope="module")
def brokers(
    java: Path, kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[AuthorizedBroker, AuthorizedBroker]]:
    home = tmp_path_factory.mktemp("matrix")
    sasl, plain, controller = free_ports(3)
    voters = {"controller.quorum.voters": f"1@127.0.0.1:{controller}"}
    kafka = ApacheKafka(
        java=java,
        jars=kafka_jars,
        directory=home / "kafka",
        jvm_options=QUICK_START,
        settings=settings(sasl, plain, controller) | voters,
        broker_port=plain,
    )
    own_sasl, own_plain, own_controller = free_ports(3)
    own = BrokerProcess(home / "strandline")
    own.settings |= settings(own_sasl, own_plain, own_controller)
    own.settings["controller.quorum.voters"] = f"1@127.0.0.1:{own_controller}"
    with kafka:
        own.format()
        own.start()
        try:
            oracle = AuthorizedBroker(f"127.0.0.1:{sasl}", f"127.0.0.1:{plain}")
            strandline = AuthorizedBroker(f"127.0.0.1:{own_sasl}", f"127.0.0.1:{own_plain}")
            oracle.prepare()
            strandline.prepare()
            yield oracle, strandline
            oracle.close()
            strandline.close()
        finally:
            own.stop()


def _cases() -> list[Case]:
    cases = list(every_case())
    if not IS_SOAK:
        cases = [cases[0], *random.Random(7).sample(cases, _SAMPLED)]
    return [*cases, *combined_cases(11, _COMBINED)]


@pytest.mark.parametrize("part", range(_PARTS))
def test_every_cell_is_equal(brokers: tuple[AuthorizedBroker, AuthorizedBroker], part: int) -> None:
    oracle, strandline = brokers
    different = []
    cells = 0
    for case in _cases()[part::_PARTS]:
        for broker in brokers:
            broker.set_rules(case.rules)
        for who in oracle.clients:
            expected, found = oracle.answers(who), strandline.answers(who)
            cells += len(expected)
            different += [
                (case.name, who, probe, expected[probe], found[probe])
                for probe in expected
                if expected[probe] != found[probe]
            ]
    assert not different, f"{len(different)} of {cells} cells differ, the first: {different[0]}"
    assert cells > 5000
