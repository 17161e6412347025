"""A Spark cluster of real processes on loopback: a master and workers from PySpark's own distribution."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strandline.spark.runtime.java import use_java
from strandline.testing.clusters import free_ports, wait_until

START_SECONDS_MAX = 90


class Daemon:
    """A master or worker with its executors, in a process group of its own: what a machine is."""

    def __init__(self, directory: Path, name: str, arguments: list[str]) -> None:
        import pyspark

        use_java()
        self.home = directory / name
        self.home.mkdir()
        self._log = self.home / "log"
        script = Path(pyspark.__file__).parent / "bin" / "spark-class"
        environment = {
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
        }
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [str(script), *arguments],
                stdout=log,
                stderr=log,
                env=environment,
                cwd=self.home,
                start_new_session=True,
            )

    def wait_for(self, words: str, times: int = 1) -> None:
        try:
            wait_until(lambda: self._log.read_text().count(words) >= times, START_SECONDS_MAX)
        except TimeoutError:
            raise RuntimeError(f"{words!r} did not come:\n{self._log.read_text()[-3000:]}") from None

    def kill(self) -> None:
        """As if its machine had lost power."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def end(self) -> None:
        if self._process.poll() is None:
            self.kill()


class Standalone:
    def __init__(self, directory: Path, workers: int) -> None:
        port = free_ports(1)[0]
        self.url = f"spark://127.0.0.1:{port}"
        listening = ["--host", "127.0.0.1", "--webui-port", "0"]
        master = ["org.apache.spark.deploy.master.Master", *listening, "--port", str(port)]
        self._master = Daemon(directory, "master", master)
        self.workers: list[Daemon] = []
        try:
            self._master.wait_for("New state: ALIVE")
            for number in range(workers):
                worker = ["org.apache.spark.deploy.worker.Worker", *listening, "--cores", "1"]
                worker += ["--memory", "1g", "--work-dir", str(directory / f"worker-{number}"), self.url]
                self.workers.append(Daemon(directory, f"worker-{number}", worker))
            self._master.wait_for("Registering worker", workers)
        except BaseException:
            self.end()
            raise

    def worker_at(self, place: Path) -> Daemon:
        """Returns the worker whose executor has this directory."""
        return next(worker for worker in self.workers if worker.home in place.parents)

    def end(self) -> None:
        for daemon in (*self.workers, self._master):
            daemon.end()


@contextmanager
def standalone(directory: Path, *, workers: int) -> Iterator[Standalone]:
    started = Standalone(directory, workers)
    try:
        yield started
    finally:
        started.end()
