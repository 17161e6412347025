"""Applications that write in transactions through a proxy, and the comparison of their view with the log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

import confluent_kafka

from strandline.base.ids import TopicPartition
from strandline.client.sync import Admin, Consumer, KafkaError, Producer
from strandline.rpc.channel import response_class
from strandline.sim.checks import history as checks
from strandline.sim.history import COMMITTED, UNKNOWN, History, Send, TriedTransaction
from strandline.testing.clusters import free_ports
from strandline.wire.codec import decode_from
from strandline.wire.headers import ResponseHeader, response_header_version
from strandline.wire.schema import Request
from tests.compat.clients.interface import eventually
from tests.compat.server import APACHE, PrivateServer, Server, compat_target
from tests.frame_proxy import Fault, FrameProxy

INIT_PRODUCER_ID = 22
END_TXN = 26
PARTITIONS = 2
ATTEMPTS_MAX = 5
_CALL_S_MAX = 60
_QUIET = logging.getLogger("librdkafka")


@contextmanager
def proxied(private_server: PrivateServer, **settings: str) -> Iterator[tuple[Server, FrameProxy]]:
    """Runs a broker whose advertised listener is the proxy."""
    proxy = FrameProxy()
    given = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}", **settings}
    (port,) = free_ports(1)
    if compat_target() != APACHE:
        given["listeners"] = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0"
    try:
        with private_server(given) as server:
            proxy.forward_to(int(server.bootstrap.rpartition(":")[2]) if compat_target() == APACHE else port)
            yield server, proxy
    finally:
        proxy.close()


class Application(Protocol):
    """One life of a transactional producer; `errors` are what its calls raise when they fail."""

    errors: type[Exception]
    sends_offsets: bool

    def begin(self) -> None: ...
    def send(self, topic: str, partition: int, value: bytes) -> None: ...
    def flush(self) -> None: ...
    def send_offset(self, where: TopicPartition, offset: int, group: str) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


class Strandline:
    errors = KafkaError
    sends_offsets = True

    def __init__(self, bootstrap: str, name: str) -> None:
        self._producer = Producer(
            bootstrap_servers=bootstrap,
            transactional_id=name,
            linger_ms=1,
            retry_backoff_ms=10,
            reconnect_backoff_ms=10,
            reconnect_backoff_max_ms=50,
        )
        self._producer.init_transactions()
        self.begin = self._producer.begin_transaction
        self.flush = self._producer.flush
        self.commit = self._producer.commit_transaction
        self.abort = self._producer.abort_transaction

    def send(self, topic: str, partition: int, value: bytes) -> None:
        self._producer.send(topic, value, partition=partition)

    def send_offset(self, where: TopicPartition, offset: int, group: str) -> None:
        self._producer.send_offsets_to_transaction({where: offset}, group)

    def close(self) -> None:
        with suppress(KafkaError):
            self._producer.close(0)


class Librdkafka:
    errors = confluent_kafka.KafkaException
    # When its connection breaks shortly before, it waits for the group's coordinator for ever, past its own timeout.
    sends_offsets = False

    def __init__(self, bootstrap: str, name: str) -> None:
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": name,
                "linger.ms": 1,
                "retry.backoff.ms": 10,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 50,
                "logger": _QUIET,
            }
        )
        self._producer.init_transactions(_CALL_S_MAX)
        self.begin = self._producer.begin_transaction

    def send(self, topic: str, partition: int, value: bytes) -> None:
        self._producer.produce(topic, value, partition=partition)

    def flush(self) -> None:
        assert self._producer.flush(_CALL_S_MAX) == 0

    def send_offset(self, where: TopicPartition, offset: int, group: str) -> None:
        raise NotImplementedError

    def commit(self) -> None:
        self._producer.commit_transaction(_CALL_S_MAX)

    def abort(self) -> None:
        self._producer.abort_transaction(_CALL_S_MAX)

    def close(self) -> None:
        self._producer.purge()


class Worker:
    """Transactions one after the other, each with a value for every partition and an offset of a group."""

    def __init__(self, make: Callable[[], Application], topic: str) -> None:
        self._make = make
        self._topic = topic
        self.group = f"group-{topic}"
        self.history = History()
        self.lives = 0
        self.has_group = False
        self._count = 0
        self._application: Application | None = None

    def restart(self) -> None:
        """Another life, whatever was under way in this one."""
        if self._application is not None:
            self._application.close()
        self._application = None
        self._application = self._make()
        self.lives += 1

    def open(self) -> TriedTransaction:
        """Begins a transaction and writes its records."""
        mine = self._application
        assert mine is not None, "restart comes first"
        name = f"{self._count:04d}"
        self._count += 1
        transaction = self.history.transactions[name] = TriedTransaction(name=name)
        for partition in range(PARTITIONS):
            where = TopicPartition(self._topic, partition)
            self.history.sends.append(
                Send(process="worker", where=where, value=name.encode(), transaction=name)
            )
        mine.begin()
        for partition in range(PARTITIONS):
            mine.send(self._topic, partition, name.encode())
        mine.flush()
        return transaction

    def end(self, transaction: TriedTransaction, *, is_commit: bool) -> None:
        mine = self._application
        assert mine is not None, "restart comes first"
        if not is_commit:
            mine.abort()
            return
        if mine.sends_offsets:
            mine.send_offset(TopicPartition(self._topic, 0), int(transaction.name) + 1, self.group)
            self.has_group = True
        transaction.fate, transaction.commit_began_at = UNKNOWN, 0.0
        mine.commit()
        transaction.fate = COMMITTED

    def transact(self, *, is_commit: bool) -> bool:
        """Returns True if the step succeeded. After an error the application starts again with a new producer."""
        if self._application is None:
            self.restart()
        assert self._application is not None
        try:
            self.end(self.open(), is_commit=is_commit)
        except self._application.errors:
            self.restart()
            return False
        return True

    def close(self) -> None:
        if self._application is not None:
            self._application.close()


def judge(bootstrap: str, worker: Worker, topic: str) -> None:
    """No lost write, no aborted read, no torn transaction, no duplicate; the group's offset is of the last commit."""
    where = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    eventually(
        lambda: (_ends(bootstrap, where, "read_committed"), _ends(bootstrap, where, "read_uncommitted")),
        lambda ends: ends[0] == ends[1],
    )
    history = worker.history
    history.final = {each: tuple(records) for each, records in _read(bootstrap, where).items()}
    checks.check(history)
    committed = [name for name, each in history.transactions.items() if each.fate == COMMITTED]
    assert committed
    if worker.has_group:
        shown = [int(value) for _, value in history.final[where[0]]]
        assert _group_offset(bootstrap, worker.group, where[0]) == max(shown) + 1


def _ends(bootstrap: str, where: list[TopicPartition], level: str) -> dict[TopicPartition, int]:
    with Consumer(bootstrap_servers=bootstrap, isolation_level=level) as reader:
        return reader.end_offsets(where)


def _read(bootstrap: str, where: list[TopicPartition]) -> dict[TopicPartition, list[tuple[int, bytes]]]:
    found: dict[TopicPartition, list[tuple[int, bytes]]] = {each: [] for each in where}
    settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    with Consumer({"bootstrap.servers": bootstrap, **settings}) as reader:
        reader.assign(where)
        ends = reader.end_offsets(where)

        def is_at_end() -> bool:
            for record in reader.poll(0.2):
                found[TopicPartition(record.topic, record.partition)].append(
                    (record.offset, record.value or b"")
                )
            return all(reader.position(each) >= ends[each] for each in where)

        eventually(is_at_end, bool)
    return found


def _group_offset(bootstrap: str, group: str, where: TopicPartition) -> int:
    with Admin(bootstrap_servers=bootstrap) as admin:
        return int(admin.list_group_offsets(group, [where], require_stable=True)[where].offset)


def hidden_answer(fault: Fault, request: type[Request]) -> Any:
    """Returns the broker's response to the request that a fault struck, which the client did not get."""
    (frame,) = fault.hidden_answers
    header_version = response_header_version(request.API_KEY, request.FLEXIBLE, fault.version)
    _, position = decode_from(ResponseHeader, header_version, frame, 0)
    return decode_from(response_class(request), fault.version, frame, position)[0]
