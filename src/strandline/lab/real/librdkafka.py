"""A producer or consumer of librdkafka: `python -m strandline.lab.real.librdkafka ROLE TOPIC KEY=VALUE…`."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

_POLL_SECONDS: Final = 0.01
_RECORDS_MAX: Final = 1000
# librdkafka's own errors, by the names that Kafka has for the same.
_NAMES: Final = {
    "_MSG_TIMED_OUT": "REQUEST_TIMED_OUT",
    "_TIMED_OUT": "REQUEST_TIMED_OUT",
    "_TRANSPORT": "NETWORK_EXCEPTION",
    "_FENCED": "PRODUCER_FENCED",
}


def say(*words: object) -> None:
    print(*words, flush=True)


def name_of(error: KafkaError) -> str:
    name = str(error.name())
    return _NAMES.get(name, name)


def tried(action: Callable[[], object]) -> None:
    try:
        action()
    except KafkaException as error:
        say("refused", name_of(error.args[0]))
    else:
        say("done")


class ProducerProgram:
    def __init__(self, topic: str, settings: dict[str, str]) -> None:
        self._topic = topic
        self._producer = Producer(settings)
        if "transactional.id" in settings:
            self._producer.init_transactions()
        self._actions: dict[str, Callable[[], object]] = {
            "begin": self._producer.begin_transaction,
            "commit": self._producer.commit_transaction,
            "abort": self._producer.abort_transaction,
        }

    def do(self, command: str, arguments: list[str]) -> None:
        if command == "send":
            self._send(*map(int, arguments))
        else:
            tried(self._actions[command])

    def _send(self, number: int, partition: int, size: int) -> None:
        def told(error: KafkaError | None, message: object) -> None:
            if error is None:
                say("ok", number)
            else:
                say("failed", number, name_of(error))

        value = (b"%d" % number).ljust(size)
        try:
            self._producer.produce(self._topic, value, partition=partition, on_delivery=told)
        except KafkaException as error:
            say("failed", number, name_of(error.args[0]))

    def idle(self) -> None:
        self._producer.poll(0)


class ConsumerProgram:
    def __init__(self, topic: str, settings: dict[str, str]) -> None:
        self._consumer = Consumer(settings)
        self._consumer.subscribe(
            [topic], on_assign=_teller("assigned"), on_revoke=_teller("revoked"), on_lost=_teller("lost")
        )
        self._reads = True

    def do(self, command: str, arguments: list[str]) -> None:
        if command == "commit":
            tried(lambda: self._consumer.commit(asynchronous=False))
        elif command == "leave":
            self._reads = False
            tried(self._consumer.close)

    def idle(self) -> None:
        if not self._reads:
            return
        numbers = []
        for message in self._consumer.consume(_RECORDS_MAX, _POLL_SECONDS):
            error = message.error()
            if error is None:
                numbers.append(int(message.value() or b"-1"))
            elif not error.retriable():
                say("error", name_of(error))
                self._reads = False
                return
        if numbers:
            say("seen", *numbers)


def _teller(event: str) -> Callable[[Consumer, list[TopicPartition]], None]:
    return lambda consumer, partitions: say(event, *(each.partition for each in partitions))


def main() -> None:
    role, topic, *given = sys.argv[1:]
    settings: dict[str, Any] = dict(each.split("=", 1) for each in given)
    settings["log_level"] = 0
    program: ProducerProgram | ConsumerProgram
    try:
        program = ProducerProgram(topic, settings) if role == "producer" else ConsumerProgram(topic, settings)
    except KafkaException as error:
        say("refused", error.args[0].str())
        return
    commands: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_read, args=(commands,), daemon=True).start()
    say("ready")
    while True:
        try:
            command = commands.get(timeout=_POLL_SECONDS)
        except queue.Empty:
            program.idle()
            continue
        if command is None:
            return
        name, *arguments = command.split()
        program.do(name, arguments)
        program.idle()


def _read(commands: queue.Queue[str | None]) -> None:
    for line in sys.stdin:
        commands.put(line)
    commands.put(None)


if __name__ == "__main__":
    main()
