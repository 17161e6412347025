"""Other libraries on the real stage: their programs are started, told what to do, and listened to."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.resources import files
from importlib.util import find_spec
from typing import Final

from strandline.base.waiting import within
from strandline.lab.diaries import ConsumerDiary, ProducerDiary
from strandline.lab.real.clients import ClientLibrary, Ways
from strandline.lab.stage import UnsuitableClient
from strandline.testing.clusters import ClusterNode
from strandline.testing.fault_channels import BrokerGone
from strandline.testing.faults import BrokerFault, FaultError

_READY_SECONDS_MAX: Final = 60.0
_RESPONSE_SECONDS_MAX: Final = 300.0


class ClientProgram:
    """A program that plays a client: commands go in, events come out."""

    def __init__(self, command: list[str], on_event: Callable[[str, list[str]], None]) -> None:
        self._command = command
        self._on_event = on_event
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._responses: asyncio.Queue[tuple[str, list[str]]] = asyncio.Queue()

    async def start(self) -> None:
        """Raises UnsuitableClient if the program refuses its settings or does not start."""
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL, start_new_session=True
        )
        self._listening = asyncio.create_task(self._listen())
        word, rest = await within(_READY_SECONDS_MAX, self._responses.get())
        if word != "ready":
            raise UnsuitableClient(" ".join(rest))

    async def _listen(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            word, *rest = line.decode().split()
            if word in ("ready", "done", "refused"):
                self._responses.put_nowait((word, rest))
            else:
                self._on_event(word, rest)
        self._responses.put_nowait(("refused", ["the", "program", "has", "ended"]))

    def tell(self, command: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(command.encode() + b"\n")

    async def ask(self, command: str) -> None:
        """Returns when it is done; raises UnsuitableClient with the library's error if it is refused."""
        self.tell(command)
        word, rest = await within(_RESPONSE_SECONDS_MAX, self._responses.get())
        if word != "done":
            raise UnsuitableClient(f"{command} is refused: {' '.join(rest)}")

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        if self._listening is not None:
            await asyncio.gather(self._listening, return_exceptions=True)


class OutsideProducer(ProducerDiary):
    def __init__(
        self,
        command: Callable[[Mapping[str, str]], list[str]],
        name: str,
        settings: Mapping[str, str],
        topic: str,
        partitions: int,
        on_result: Callable[[], None],
    ) -> None:
        super().__init__(name, settings, topic, partitions, on_result)
        self._program = ClientProgram(command({"client.id": name, **settings}), self._event)

    def _event(self, word: str, rest: list[str]) -> None:
        self._ended(int(rest[0]), None if word == "ok" else rest[1])

    async def start(self) -> None:
        await self._program.start()

    async def _append(self, number: int, value: bytes, partition: int) -> None:
        self._program.tell(f"send {number} {partition} {len(value)}")

    async def _begin(self) -> None:
        await self._program.ask("begin")

    async def _commit(self) -> None:
        await self._program.ask("commit")

    async def _abort(self) -> None:
        await self._program.ask("abort")

    async def close(self) -> None:
        await self._program.kill()


class OutsideConsumer(ConsumerDiary):
    def __init__(
        self,
        command: Callable[[Mapping[str, str]], list[str]],
        name: str,
        settings: Mapping[str, str],
        on_change: Callable[[], None],
    ) -> None:
        super().__init__(name, asyncio.get_running_loop().time, on_change)
        given = {"client.id": name, "auto.offset.reset": "earliest", "group.id": name, **settings}
        self._program = ClientProgram(command(given), self._event)

    def _event(self, word: str, rest: list[str]) -> None:
        match word:
            case "seen":
                self.seen += map(int, rest)
                self._on_change()
            case "error":
                self._stopped_by(rest[0])
            case "assigned":
                self._assign(set(map(int, rest)))
            case "revoked":
                self._revoke(set(map(int, rest)))
            case "lost":
                self._lose(set(map(int, rest)))

    async def start(self) -> None:
        await self._program.start()

    async def commit(self) -> None:
        await self._program.ask("commit")

    async def _leave(self) -> None:
        await self._program.ask("leave")

    async def _end_polling(self) -> None:
        """Only a crash ends it before it has left, and then it takes nothing back."""
        if self.is_crashed:
            await self._program.kill()

    async def close(self) -> None:
        await self._program.kill()


class OutsideLibrary(ClientLibrary):
    """A library whose clients are programs. Their links are cut at the brokers, by the client's id."""

    def __init__(self) -> None:
        super().__init__()
        self._cut: dict[tuple[int, str], set[bool]] = {}
        self._faults: dict[tuple[int, str], BrokerFault] = {}

    @abstractmethod
    def command(self, role: str, topic: str, settings: Mapping[str, str]) -> list[str]: ...

    def producer(
        self,
        name: str,
        settings: Mapping[str, str],
        topic: str,
        partitions: int,
        on_result: Callable[[], None],
        cut: Ways,
    ) -> ProducerDiary:
        def command(given: Mapping[str, str]) -> list[str]:
            return self.command("producer", topic, given)

        return OutsideProducer(command, name, settings, topic, partitions, on_result)

    def consumer(
        self,
        name: str,
        settings: Mapping[str, str],
        topic: str,
        on_change: Callable[[], None],
        work_seconds: float,
        cut: Ways,
    ) -> ConsumerDiary:
        if work_seconds:
            raise UnsuitableClient("a consumer that works on each record for some time is Strandline's only")

        def command(given: Mapping[str, str]) -> list[str]:
            return self.command("consumer", topic, given)

        return OutsideConsumer(command, name, settings, on_change)

    def cut(self, node: ClusterNode, client: str, is_to_client: bool) -> None:
        super().cut(node, client, is_to_client)
        self._cut.setdefault((node.node_id, client), set()).add(is_to_client)
        self._set_fault(node, client)

    def heal(self, node: ClusterNode, client: str, is_to_client: bool) -> None:
        super().heal(node, client, is_to_client)
        self._cut.get((node.node_id, client), set()).discard(is_to_client)
        self._set_fault(node, client)

    def _set_fault(self, node: ClusterNode, client: str) -> None:
        """One fault has both ways: where requests do not arrive, there are no responses either."""
        place = node.node_id, client
        old, ways = self._faults.pop(place, None), self._cut[place]
        if not node.is_running or not node.bootstrap:
            return
        if old is not None:
            with suppress(BrokerGone, FaultError):  # of an earlier life of the node
                old.clear()
        if ways:
            set_fault = node.faults.drop_response if ways == {True} else node.faults.black_hole
            self._faults[place] = set_fault(client_id=client, times=None)


class Librdkafka(OutsideLibrary):
    name = "librdkafka"
    # Where librdkafka's defaults are others than those of Java, which scenarios are written for.
    _DEFAULTS: Final = {"delivery.timeout.ms": "120000", "enable.idempotence": "true"}

    def __init__(self) -> None:
        super().__init__()
        if find_spec("confluent_kafka") is None:
            raise UnsuitableClient("librdkafka is not installed: pip install confluent-kafka")

    def command(self, role: str, topic: str, settings: Mapping[str, str]) -> list[str]:
        given = dict(settings)
        if role == "producer":
            given = {**self._DEFAULTS, **given}
            if given.get("acks", "all") not in ("all", "-1") or given.get("retries") == "0":
                given["enable.idempotence"] = settings.get("enable.idempotence", "false")
        program = [sys.executable, "-m", f"{__package__}.librdkafka"]
        return [*program, role, topic, *(f"{key}={value}" for key, value in given.items())]


class Java(OutsideLibrary):
    name = "java"

    def __init__(self) -> None:
        super().__init__()
        java, self._classpath = shutil.which("java"), os.environ.get("CLASSPATH", "")
        if home := os.environ.get("JAVA_HOME"):
            java = shutil.which(os.path.join(home, "bin", "java")) or java
        if java is None:
            raise UnsuitableClient(
                "there is no java on PATH or in JAVA_HOME; it has to be a JDK, 17 or newer"
            )
        if not self._classpath:
            raise UnsuitableClient("CLASSPATH does not name Kafka's jars, such as CLASSPATH='kafka/libs/*'")
        self._java = java

    def command(self, role: str, topic: str, settings: Mapping[str, str]) -> list[str]:
        source = str(files(__package__).joinpath("LabClient.java"))
        options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", self._classpath]
        pairs = [f"{key}={value}" for key, value in settings.items()]
        return [self._java, *options, source, role, topic, *pairs]
