"""Fetches what the tests need and pip does not install: `python -m tests.oracle.fetch`, and with `--soak` what only
the long tests need.

Each oracle is taken from the machine where it has one, and otherwise fetched into the cache outside the tree.
What cannot be fetched makes its tests skip, which is fine on a user's machine; with
STRANDLINE_REQUIRE_ORACLES=1 it is a failure.
"""

from __future__ import annotations

import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from tests.oracle import cache, debian
from tests.oracle.debian import CannotFetchError

# The newest release whose artifacts resolve whole.
KAFKA_VERSION = "4.3.1"
Coordinates = tuple[tuple[str, str, str], ...]
SLF4J = ("org.slf4j", "slf4j-simple", "1.7.36")
KAFKA_COORDINATES: Coordinates = (
    ("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
    ("org.apache.kafka", "kafka-tools", KAFKA_VERSION),
    SLF4J,
)
KAFKA_STREAMS_COORDINATES: Coordinates = (("org.apache.kafka", "kafka-streams", KAFKA_VERSION), SLF4J)
# MirrorMaker 2 and its client, which read what our mirror writes.
KAFKA_MIRROR_COORDINATES: Coordinates = (
    ("org.apache.kafka", "connect-mirror", KAFKA_VERSION),
    ("org.apache.kafka", "connect-mirror-client", KAFKA_VERSION),
    ("org.apache.kafka", "connect-runtime", KAFKA_VERSION),
    SLF4J,
)
# A Java client of the time before brokers had features whose lowest level is 0: it fails if it is told of one.
OLD_CLIENTS_VERSION = "3.7.2"
OLD_CLIENTS_COORDINATES: Coordinates = (
    ("org.apache.kafka", "kafka-clients", OLD_CLIENTS_VERSION),
    ("com.fasterxml.jackson.core", "jackson-databind", "2.21.2"),
    SLF4J,
)
# Spark's own connector. Its token provider does not resolve in this version: the one of 4.0.0 is the last that
# does, and it only matters to clusters with delegation tokens.
SPARK_VERSION = "4.2.0"
SPARK_KAFKA_COORDINATES: Coordinates = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", SPARK_VERSION),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
)
# The newest from_avro that resolves; it runs on the Spark above.
SPARK_AVRO_VERSION = "4.1.1"
SPARK_AVRO_COORDINATES: Coordinates = (("org.apache.spark", "spark-avro_2.13", SPARK_AVRO_VERSION),)
# Lake formats for the pipeline's sinks. Iceberg has no runtime for this Spark yet: the newest is for the one before.
DELTA_VERSION = "4.4.0"
DELTA_COORDINATES: Coordinates = (
    ("io.delta", "delta-spark_4.2_2.13", DELTA_VERSION),
    ("io.delta", "delta-storage", DELTA_VERSION),
    ("io.delta", "delta-kernel-api", DELTA_VERSION),
    ("io.delta", "delta-kernel-defaults", DELTA_VERSION),
    ("io.delta", "delta-kernel-unitycatalog", DELTA_VERSION),
    ("io.unitycatalog", "unitycatalog-client", "0.6.0"),
)
ICEBERG_VERSION = "1.12.0"
ICEBERG_COORDINATES: Coordinates = (
    ("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", ICEBERG_VERSION),
)
# Kafka's clients run on Java 11, but its broker and tools need 17.
JAVA_VERSION_MIN = 17
JAVA_PACKAGES = ("openjdk-17-jdk-headless", "openjdk-21-jdk-headless", "default-jdk-headless")
MAVEN_TIMEOUT_S = 900
BUILD_TIMEOUT_S = 900


class Oracle(ABC):
    """Something to compare Strandline with."""

    name: str
    why_missing: str

    @abstractmethod
    def locate(self) -> Path | None:
        """Returns its path, or None. This is quick, and changes nothing."""

    @abstractmethod
    def fetch(self) -> None:
        """Put it where `locate` finds it, or raise CannotFetchError."""


class JavaOracle(Oracle):
    """The `java` executable of a JDK: the tests also run Java sources, which a JRE cannot."""

    name = "java"
    why_missing = f"no JDK {JAVA_VERSION_MIN} or newer in JAVA_HOME, on PATH or in the cache of oracles"

    def locate(self) -> Path | None:
        candidates = []
        if home := os.environ.get("JAVA_HOME"):
            candidates.append(Path(home) / "bin" / "java")
        if found := shutil.which("java"):
            candidates.append(Path(found))
        if unpacked := cache.newest_installed("java"):
            candidates.append(_java_in(unpacked))
        return next((path.resolve() for path in candidates if _is_jdk(path.resolve())), None)

    def fetch(self) -> None:
        reasons = []
        for package in JAVA_PACKAGES:
            try:
                with debian.planned(package) as plan:
                    cache.install(f"java-{plan.version}", lambda into, plan=plan: _unpack_java(plan, into))
                return
            except CannotFetchError as reason:
                reasons.append(str(reason))
        raise CannotFetchError("; ".join(reasons))


def _pom(coordinates: Coordinates, *, is_transitive: bool) -> str:
    alone = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version>{'' if is_transitive else alone}</dependency>"
        for group, artifact, version in coordinates
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>strandline</groupId>"
        "<artifactId>oracles</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )


class JarsOracle(Oracle):
    """A directory with jars from Maven, by their coordinates."""

    def __init__(
        self, name: str, what: str, version: str, coordinates: Coordinates, *, is_transitive: bool = True
    ) -> None:
        self.name = name
        self.why_missing = (
            f"the jars of {what} {version} are not in the cache of oracles (Maven fetches them)"
        )
        self._directory = f"{name}-{version}"
        self._project = _pom(coordinates, is_transitive=is_transitive)

    def locate(self) -> Path | None:
        return cache.installed(self._directory)

    def fetch(self) -> None:
        java = JAVA.locate()
        if java is None:
            raise CannotFetchError(f"Maven needs Java, and there is {JAVA.why_missing}")
        cache.install(self._directory, lambda into: _copy_dependencies(java, self._project, into))


class DebianCommandOracle(Oracle):
    """A command of a Debian package, which finds the libraries of that package wherever it was unpacked."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.why_missing = f"{name} is neither on PATH nor in the cache of oracles"

    def locate(self) -> Path | None:
        if found := shutil.which(self.name):
            return Path(found)
        unpacked = cache.newest_installed(self.name)
        return unpacked / self.name if unpacked else None

    def fetch(self) -> None:
        with debian.planned(self.name) as plan:
            cache.install(f"{self.name}-{plan.version}", lambda into: _unpack_command(self.name, plan, into))


class ChromiumOracle(Oracle):
    """The headless build of Chromium, with fonts of its own where the machine has none."""

    name = "chromium-headless-shell"
    why_missing = "chromium-headless-shell is neither on PATH nor in the cache of oracles"

    def locate(self) -> Path | None:
        if found := shutil.which(self.name):
            return Path(found)
        unpacked = cache.newest_installed(self.name)
        return unpacked / self.name if unpacked else None

    def fetch(self) -> None:
        with debian.planned(self.name) as plan:
            cache.install(f"{self.name}-{plan.version}", lambda into: _unpack_chromium(plan, into))


class PrometheusOracle(Oracle):
    """A directory with the `prometheus` and `promtool` commands."""

    name = "prometheus"
    why_missing = "prometheus and promtool are neither on PATH nor in the cache of oracles"

    def locate(self) -> Path | None:
        found = shutil.which("prometheus")
        if found and shutil.which("promtool"):
            return Path(found).parent
        unpacked = cache.newest_installed("prometheus")
        return unpacked / "usr" / "bin" if unpacked else None

    def fetch(self) -> None:
        with debian.planned("prometheus") as plan:
            cache.install(f"prometheus-{plan.version}", lambda into: _unpack_prometheus(plan, into))


class GoToolOracle(Oracle):
    """A command that `go install` builds."""

    def __init__(self, name: str, package: str, version: str) -> None:
        self.name = name
        self.why_missing = f"{name} is neither on PATH nor in the cache of oracles (`go` builds it)"
        self._package = f"{package}@{version}"
        self._directory = f"{name}-{version}"

    def locate(self) -> Path | None:
        if found := shutil.which(self.name):
            return Path(found)
        built = cache.installed(self._directory)
        return built / self.name if built else None

    def fetch(self) -> None:
        if shutil.which("go") is None:
            raise CannotFetchError("there is no `go` on PATH")
        cache.install(self._directory, self._build)

    def _build(self, into: Path) -> None:
        done = subprocess.run(
            ["go", "install", self._package],
            env={**os.environ, "GOBIN": str(into)},
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            raise CannotFetchError(f"`go install {self._package}` failed: {done.stderr.strip()[-500:]}")


class ProgramOracle(Oracle):
    """A directory with a program of `tests/compat` and the clients that it uses, made by its language's own tool."""

    def __init__(
        self, name: str, what: str, tool: str, sources: Path, commands: Sequence[Sequence[str]]
    ) -> None:
        self.name = name
        self.why_missing = f"{what} are not in the cache of oracles (`{tool}` builds them)"
        self._tool = tool
        self._sources = sorted(path for path in sources.iterdir() if path.is_file())
        self._commands = commands

    @property
    def _directory(self) -> str:
        """Other sources are another program."""
        digest = sha256()
        for path in self._sources:
            digest.update(path.name.encode() + path.read_bytes())
        return f"{self.name}-{digest.hexdigest()[:16]}"

    def locate(self) -> Path | None:
        return cache.installed(self._directory) if shutil.which(self._tool) else None

    def fetch(self) -> None:
        if shutil.which(self._tool) is None:
            raise CannotFetchError(f"there is no `{self._tool}` on PATH")
        cache.install(self._directory, self._build)

    def _build(self, into: Path) -> None:
        for path in self._sources:
            shutil.copy(path, into)
        for command in self._commands:
            done = subprocess.run(
                command, cwd=into, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False
            )
            if done.returncode != 0:
                raise CannotFetchError(f"`{' '.join(command)}` failed: {done.stderr.strip()[-500:]}")


JAVA = JavaOracle()
KAFKA_JARS = JarsOracle("kafka-jars", "Apache Kafka", KAFKA_VERSION, KAFKA_COORDINATES)
KAFKA_STREAMS_JARS = JarsOracle("kafka-streams", "Kafka Streams", KAFKA_VERSION, KAFKA_STREAMS_COORDINATES)
KAFKA_MIRROR_JARS = JarsOracle("kafka-mirror", "MirrorMaker 2", KAFKA_VERSION, KAFKA_MIRROR_COORDINATES)
OLD_CLIENTS_JARS = JarsOracle(
    "kafka-clients", "Kafka's clients", OLD_CLIENTS_VERSION, OLD_CLIENTS_COORDINATES
)
KCAT = DebianCommandOracle("kcat")
ZSH = DebianCommandOracle("zsh")
FISH = DebianCommandOracle("fish")
PROMETHEUS = PrometheusOracle()
CHROMIUM = ChromiumOracle()
BURROW = GoToolOracle("Burrow", "github.com/linkedin/Burrow", "v1.9.5")
KAFKA_EXPORTER = GoToolOracle("kafka_exporter", "github.com/danielqsj/kafka_exporter", "v1.9.0")
SPARK_KAFKA_JARS = JarsOracle(
    "spark-kafka-jars", "Spark's Kafka connector", SPARK_VERSION, SPARK_KAFKA_COORDINATES, is_transitive=False
)
_COMPAT = Path(__file__).parent.parent / "compat"
GO_CLIENTS = ProgramOracle(
    "go-clients", "Go's clients", "go", _COMPAT / "go", [("go", "build", "-o", "goclients", ".")]
)
NODE_CLIENTS = ProgramOracle(
    "node-clients",
    "Node's clients",
    "npm",
    _COMPAT / "node",
    [("npm", "install", "--no-package-lock", "--no-audit", "--no-fund")],
)
SPARK_AVRO_JARS = JarsOracle(
    "spark-avro-jars", "Spark's from_avro", SPARK_AVRO_VERSION, SPARK_AVRO_COORDINATES, is_transitive=False
)
DELTA_JARS = JarsOracle("delta-jars", "Delta Lake", DELTA_VERSION, DELTA_COORDINATES, is_transitive=False)
ICEBERG_JARS = JarsOracle(
    "iceberg-jars", "Apache Iceberg", ICEBERG_VERSION, ICEBERG_COORDINATES, is_transitive=False
)
ORACLES: tuple[Oracle, ...] = (
    *(JAVA, KAFKA_JARS, KAFKA_STREAMS_JARS, KAFKA_MIRROR_JARS, OLD_CLIENTS_JARS, KCAT, PROMETHEUS),
    *(ZSH, FISH, CHROMIUM),
    *(SPARK_KAFKA_JARS, SPARK_AVRO_JARS, DELTA_JARS, ICEBERG_JARS),
    *(GO_CLIENTS, NODE_CLIENTS),
)

# Of `make soak`: each takes more than a minute to build.
SOAK_ORACLES: tuple[Oracle, ...] = (BURROW, KAFKA_EXPORTER)


def oracles_are_required() -> bool:
    return os.environ.get("STRANDLINE_REQUIRE_ORACLES") == "1"


def main() -> int:
    wanted = SOAK_ORACLES if "--soak" in sys.argv[1:] else ORACLES
    missing = [oracle for oracle in wanted if not _ensure(oracle)]
    return 1 if missing and oracles_are_required() else 0


def _ensure(oracle: Oracle) -> bool:
    if oracle.locate() is not None:
        print(f"{oracle.name}: found")
        return True
    print(f"{oracle.name}: fetching", flush=True)
    try:
        oracle.fetch()
    except (CannotFetchError, OSError, subprocess.SubprocessError) as reason:
        print(f"{oracle.name}: cannot be fetched: {reason}", flush=True)
        return False
    assert oracle.locate() is not None, f"{oracle.name} was fetched but cannot be found"
    print(f"{oracle.name}: fetched", flush=True)
    return True


def _is_jdk(java: Path) -> bool:
    if not (java.is_file() and (java.parent / "javac").exists()):
        return False
    release = java.parent.parent / "release"
    version = re.search(
        r'^JAVA_VERSION="(\d+)', release.read_text() if release.exists() else "", re.MULTILINE
    )
    return version is not None and int(version[1]) >= JAVA_VERSION_MIN


def _java_in(root: Path) -> Path:
    """Returns the unpacked `java`, which the package has under several names."""
    return min(root.glob("usr/lib/jvm/*/bin/java")).resolve()


def _unpack_java(plan: debian.Plan, into: Path) -> None:
    plan.unpack(into)
    java = _java_in(into)
    trusted = java.parent.parent / "lib" / "security" / "cacerts"
    if trusted.exists():
        return
    # The package builds its trust store when it is installed; unpacked, it has none, and Maven needs one.
    bundle = ssl.get_default_verify_paths().cafile
    if bundle is None:
        raise CannotFetchError("this machine has no bundle of CA certificates")
    trusted.unlink(missing_ok=True)
    source = Path(__file__).parent / "java" / "TrustStore.java"
    subprocess.run(
        [str(java), str(source), bundle, str(trusted)], capture_output=True, timeout=60, check=True
    )


def _copy_dependencies(java: Path, project: str, into: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        pom = Path(scratch) / "pom.xml"
        pom.write_text(project)
        done = subprocess.run(
            [
                *(str(_maven()), "-B", "-q", "-ntp", "-Dstyle.color=never", "-f", str(pom)),
                "dependency:copy-dependencies",
                *("-DincludeScope=runtime", f"-DoutputDirectory={into}"),
            ],
            env={**os.environ, "JAVA_HOME": str(java.parent.parent)},
            capture_output=True,
            text=True,
            timeout=MAVEN_TIMEOUT_S,
            check=False,
        )
    if done.returncode != 0:
        errors = [line for line in done.stdout.splitlines() if "ERROR" in line] or [done.stderr.strip()]
        raise CannotFetchError(f"Maven failed: {errors[0]}")


def _maven() -> Path:
    """Returns the machine's Maven, or the distribution's, unpacked. It is a tool of this module, and not an oracle."""
    if found := shutil.which("mvn"):
        return Path(found)
    with debian.planned("maven") as plan:
        return cache.install(f"maven-{plan.version}", plan.unpack) / "usr/share/maven/bin/mvn"


def _unpack_command(name: str, plan: debian.Plan, into: Path) -> None:
    root = into / "root"
    root.mkdir()
    plan.unpack(root)
    program = next(path for path in (root / "usr/bin" / name, root / "bin" / name) if path.exists())
    _write_wrapper(name, program, into, root)


def _unpack_chromium(plan: debian.Plan, into: Path) -> None:
    """Its command names a path below /usr, so the wrapper starts the program itself, which looks for data beside it.

    What the machine has of that already was not unpacked.
    """
    root = into / "root"
    root.mkdir()
    plan.unpack(root)
    installed, unpacked = Path("/usr/lib/chromium"), root / "usr" / "lib" / "chromium"
    for path in installed.iterdir() if installed.is_dir() else ():
        if path.is_file() and path.name != "chromium" and not (unpacked / path.name).exists():
            shutil.copy(path, unpacked)
    (into / "fonts.conf").write_text(
        '<?xml version="1.0"?><fontconfig><include ignore_missing="yes">/etc/fonts/fonts.conf</include>'
        '<dir prefix="relative">root/usr/share/fonts</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>'
    )
    program = unpacked / ChromiumOracle.name
    _write_wrapper(ChromiumOracle.name, program, into, root, 'export FONTCONFIG_FILE="$here/fonts.conf"\n')


def _write_wrapper(name: str, program: Path, into: Path, root: Path, environment: str = "") -> None:
    # Relative to the wrapper: the directory is renamed after it is built.
    libraries = ":".join(f"$here/{path.relative_to(into)}" for path in debian.library_directories(root))
    wrapper = into / name
    wrapper.write_text(
        "#!/bin/sh\n"
        'here=$(dirname "$(readlink -f "$0")")\n'
        f"{environment}"
        f'LD_LIBRARY_PATH="{libraries}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}" '
        f'exec "$here/{program.relative_to(into)}" "$@"\n'
    )
    wrapper.chmod(0o755)
    option = "-V" if name == "kcat" else "--version"
    tried = subprocess.run([str(wrapper), option], capture_output=True, text=True, timeout=30, check=False)
    if tried.returncode != 0:
        raise CannotFetchError(f"the unpacked {name} does not run: {tried.stderr.strip()}")


def _unpack_prometheus(plan: debian.Plan, into: Path) -> None:
    """Both commands are static programs; what the package needs besides is for its pages and its service."""
    plan.unpack(into)
    for name in ("prometheus", "promtool"):
        tried = subprocess.run(
            [str(into / "usr" / "bin" / name), "--version"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        if tried.returncode != 0:
            raise CannotFetchError(f"the unpacked {name} does not run: {tried.stderr.strip()}")


if __name__ == "__main__":
    sys.exit(main())
