"""Requests of transactions that are duplicated, torn, late, or applied without a response, on a real broker.

Whatever is done to them: no lost write, no aborted read, no torn transaction, no duplicate, as a read_committed reader
finds it in the end (`injected.judge`), and a group whose offset is that of the last transaction which was committed.

| case                                              | where                                                         |
| duplicated Produce, AddPartitionsToTxn, …         | test_no_request_…[…-DUPLICATE], and Java's                    |
| work applied, answer lost or torn                 | test_no_request_…[…-LOSE_ANSWER], […-TEAR_ANSWER], and Java's |
| torn frames                                       | test_no_request_…[…-TEAR], and Java's                         |
| late requests                                     | test_no_request_…[…-DELAY]                                    |
| an end that arrives in the next transaction       | test_a_late_end_…, and Java's                                 |
| InitProducerId while a transaction is open        | test_no_request_… opens one before each of its restarts       |
| epoch 32766, InitProducerId in its transaction    | test_transaction_edges.py                                     |
| the last batch of a segment is a marker           | test_transaction_edges.py                                     |
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.sim.history import COMMITTED, Send, TriedTransaction, Violation
from strandline.wire.api.k26_end_txn import EndTxnRequest
from tests.client.features import set_transaction_version
from tests.client.reading import create, run
from tests.compat.clients.java_client import JavaClient
from tests.compat.injected import (
    ATTEMPTS_MAX,
    END_TXN,
    INIT_PRODUCER_ID,
    PARTITIONS,
    Application,
    Librdkafka,
    Strandline,
    Worker,
    hidden_answer,
    judge,
    proxied,
)
from tests.compat.server import PrivateServer
from tests.frame_proxy import Act, Fault, FrameProxy
from tests.oracle.java_worker import JavaWorker

PRODUCE = 0
ADD_PARTITIONS_TO_TXN = 24
ADD_OFFSETS_TO_TXN = 25
TXN_OFFSET_COMMIT = 28

# What a producer sends in each version of transactions.
APIS = {
    1: (INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, PRODUCE, ADD_OFFSETS_TO_TXN, TXN_OFFSET_COMMIT, END_TXN),
    2: (INIT_PRODUCER_ID, PRODUCE, TXN_OFFSET_COMMIT, END_TXN),
}
CLIENTS: dict[str, tuple[type[Application], int]] = {
    "strandline-v2": (Strandline, 2),
    "strandline-v1": (Strandline, 1),
    "librdkafka": (Librdkafka, 1),
}
OFFSETS = (ADD_OFFSETS_TO_TXN, TXN_OFFSET_COMMIT)


@pytest.fixture(scope="module")
def proxy_and_bootstrap(private_server: PrivateServer) -> Iterator[tuple[FrameProxy, str]]:
    with proxied(private_server) as (_, proxy):
        yield proxy, f"127.0.0.1:{proxy.port}"


@pytest.fixture
def proxy(proxy_and_bootstrap: tuple[FrameProxy, str]) -> FrameProxy:
    return proxy_and_bootstrap[0]


@pytest.fixture
def bootstrap(proxy_and_bootstrap: tuple[FrameProxy, str]) -> str:
    return proxy_and_bootstrap[1]


def fault_for(act: Act, api_key: int) -> Fault:
    """Returns a fault by which an end arrives in the next transaction, or a beginning in the one after its own."""
    until = PRODUCE if api_key in (END_TXN, INIT_PRODUCER_ID) else END_TXN
    return Fault(act=act, api_key=api_key, until=until)


def is_harmless_for(client: str, act: Act, api_key: int) -> bool:
    """Brokers have no defence against a late end in version 1 (KIP-890): they take it for one of the next transaction.
    Strandline's producer takes another epoch for that; librdkafka goes on with the one that it has."""
    return client != "librdkafka" or act is not Act.DELAY or api_key != END_TXN


@pytest.mark.parametrize("act", Act, ids=lambda act: act.name)
@pytest.mark.parametrize("client", CLIENTS)
def test_no_request_does_harm_when_it_is(
    client: str, act: Act, proxy: FrameProxy, bootstrap: str, topic: str
) -> None:
    make, version = CLIENTS[client]
    run(set_transaction_version(bootstrap, version))
    run(create(bootstrap, topic, partitions=PARTITIONS))
    worker = Worker(partial(make, bootstrap, topic), topic)
    worker.restart()
    worker.transact(is_commit=True)
    for api_key in APIS[version]:
        if not is_harmless_for(client, act, api_key) or (api_key in OFFSETS and not make.sends_offsets):
            continue
        fault = fault_for(act, api_key)
        if api_key == INIT_PRODUCER_ID:
            worker.open()
            proxy.inject(fault)
            worker.restart()
        else:
            proxy.inject(fault)
        strike(worker, fault)
    worker.transact(is_commit=True)
    worker.close()
    judge(bootstrap, worker, topic)


def is_done(fault: Fault) -> bool:
    return fault.is_over if fault.act is Act.DELAY else fault.has_struck


def strike(worker: Worker, fault: Fault) -> None:
    """Transactions, committed and aborted, until the fault has struck and one more went well."""
    for number in range(ATTEMPTS_MAX):
        is_well = worker.transact(is_commit=number % 2 == 0)
        if is_well and is_done(fault):
            return
    raise AssertionError(f"{fault} did not strike")


@pytest.mark.parametrize("is_late_commit", [True, False], ids=["commit", "abort"])
def test_a_late_end_cannot_enter_the_next_transaction(
    is_late_commit: bool, proxy: FrameProxy, bootstrap: str, topic: str
) -> None:
    run(set_transaction_version(bootstrap, 2))
    run(create(bootstrap, topic, partitions=PARTITIONS))
    worker = Worker(partial(Strandline, bootstrap, topic), topic)
    worker.restart()
    assert worker.transact(is_commit=True)
    fault = Fault(act=Act.DELAY, api_key=END_TXN, until=PRODUCE)
    proxy.inject(fault)
    assert worker.transact(is_commit=is_late_commit)
    assert worker.transact(is_commit=not is_late_commit)
    assert worker.lives == 1
    worker.close()
    assert fault.is_over
    assert hidden_answer(fault, EndTxnRequest).error_code == ErrorCode.PRODUCER_FENCED
    judge(bootstrap, worker, topic)


def test_a_late_end_that_is_let_in_is_noticed(proxy: FrameProxy, bootstrap: str, topic: str) -> None:
    """As it must be in version 1 with librdkafka: this is what the tests above would say if nobody fenced it."""
    run(set_transaction_version(bootstrap, 1))
    run(create(bootstrap, topic, partitions=PARTITIONS))
    worker = Worker(partial(Librdkafka, bootstrap, topic), topic)
    worker.restart()
    proxy.inject(fault_for(Act.DELAY, END_TXN))
    assert worker.transact(is_commit=True)
    worker.transact(is_commit=False)
    worker.close()
    with pytest.raises(Violation):
        judge(bootstrap, worker, topic)


@pytest.mark.oracle
@pytest.mark.xdist_group("apache-kafka")
def test_java_s_transactions_survive_all_of_it(
    proxy: FrameProxy, bootstrap: str, topic: str, java_worker: JavaWorker
) -> None:
    run(set_transaction_version(bootstrap, 2))
    run(create(bootstrap, topic, partitions=PARTITIONS))
    faults = [fault_for(act, api_key) for act in Act for api_key in APIS[2] if api_key != INIT_PRODUCER_ID]
    faults = [Fault(act=Act.LOSE_ANSWER, api_key=INIT_PRODUCER_ID), *faults]
    worker = Worker(partial(Strandline, bootstrap, topic), topic)
    worker.has_group = True
    transactions = [
        {"value": f"{number:04d}", "commit": number % 3 != 1, "offset": number + 1} for number in range(60)
    ]
    proxy.inject(*faults)
    JavaClient(bootstrap, java_worker).call(
        "transact",
        topic=topic,
        partitions=list(range(PARTITIONS)),
        group=worker.group,
        transactions=transactions,
        settings={
            "transactional.id": topic,
            "retry.backoff.ms": "10",
            "reconnect.backoff.ms": "10",
            "reconnect.backoff.max.ms": "50",
        },
    )
    missing = [fault for fault in faults if not is_done(fault)]
    assert not missing
    for each in transactions:
        name = str(each["value"])
        told = worker.history.transactions[name] = TriedTransaction(name=name)
        if each["commit"]:
            told.fate, told.commit_began_at = COMMITTED, 0.0
        for partition in range(PARTITIONS):
            where = TopicPartition(topic, partition)
            worker.history.sends.append(
                Send(process="java", where=where, value=name.encode(), transaction=name)
            )
    judge(bootstrap, worker, topic)
